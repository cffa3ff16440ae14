"""Runs that are lost are begun anew and counted; agents that nobody needs any more are found."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from common.settings import get_settings
from sandbox.errors import BackendError
from sandbox.supervision.control import Layout as Files
from sandbox.supervision.control import Supervisor, read
from storage.runs.tries import MAX_TRIES, Tries
from tasks.agent_run import run_agent, work_folder
from tasks.wiring import host
from tasks.wiring.attempts import attempt_folder, finished_run
from tasks.wiring.backends import stop_all
from tasks.wiring.requests import Attempt, RunRequest
from tests.bundles import bundle
from tests.stores import Store, put_dataset
from tests.waiting import until

AGENT = """\
#!/bin/bash
echo begun
until [ -e "$LOGS_DIR/go" ]; do sleep 0.05; done
cp "$SAMPLE_SUBMISSION" "$SUBMISSION_DIR/submission.csv"
"""


@pytest.fixture(autouse=True)
def _settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("MLEBENCH_SCRATCH", str(tmp_path / "scratch"))
    monkeypatch.setenv("MLEBENCH_AGENT_DIRS", str(tmp_path))
    get_settings.cache_clear()
    yield
    stop_all()
    get_settings.cache_clear()


@pytest.fixture
def attempt(tmp_path: Path, store: Store) -> Attempt:
    raw = tmp_path / "diabetes.zip"
    raw.write_bytes(bundle("diabetes"))
    put_dataset(store, "diabetes", raw)
    folder = tmp_path / "waits"
    folder.mkdir()
    (folder / "agent.yaml").write_text("description: Waits.\ntrusted: true\n")
    (folder / "start.sh").write_text(AGENT)
    return Attempt(
        request=RunRequest(agent=str(folder), run_group="g", store=store.root),
        competition_id="diabetes",
        seed=0,
        key="key",
    )


class Running:
    """`run_agent` in a thread."""

    def __init__(self, attempt: Attempt, store: Store) -> None:
        self.files = Files(work_folder(attempt, store))
        self.ended: list[str | BaseException] = []
        self._attempt, self._seen = attempt, 0
        self.thread = threading.Thread(target=self._run)
        self.thread.start()

    def _run(self) -> None:
        try:
            self.ended.append(run_agent(self._attempt))
        except BaseException as error:
            self.ended.append(error)

    def supervisor(self) -> int:
        """The process id of the next supervisor whose agent has begun."""

        def pid() -> int:
            found = read(self.files.supervisor, Supervisor)
            return found.pid if found and found.pid != self._seen else 0

        self._seen = until(pid, may_yet=lambda: self.thread.is_alive())
        return self._seen

    def go(self) -> str | BaseException:
        (self.files.home / "logs" / "go").touch()
        return self.end()

    def end(self) -> str | BaseException:
        self.thread.join(120)
        return self.ended[0]


def test_a_lost_run_is_begun_anew_and_counted(attempt: Attempt, store: Store) -> None:
    running = Running(attempt, store)
    os.kill(running.supervisor(), signal.SIGTERM)  # as a machine does that is shut down; it is not the user's wish
    os.kill(running.supervisor(), signal.SIGKILL)
    running.supervisor()
    assert running.go() == "completed"
    record = finished_run(store, attempt)
    assert record is not None
    assert (record.status, record.tries, record.host) == ("completed", 3, os.environ["MLEBENCH_HOST_NAME"])
    tries = Tries(store, attempt_folder(store, attempt).url).read()
    assert [each.lost is None for each in tries] == [False, False, True]
    assert "shut down" in (tries[0].lost or "")
    assert host.host_slots().holders() == []


def test_a_run_that_is_lost_again_and_again_is_given_up_for_now(attempt: Attempt, store: Store) -> None:
    running = Running(attempt, store)
    for _ in range(MAX_TRIES):
        os.kill(running.supervisor(), signal.SIGKILL)
    error = running.end()
    assert isinstance(error, BackendError)
    assert "lost 3 times and given up (try 1 on" in str(error)
    record = attempt_folder(store, attempt).read_run()
    assert record is not None
    assert (record.status, record.tries, record.submission_exists) == ("lost", MAX_TRIES, False)
    assert finished_run(store, attempt) is None  # the next flow run makes it again
    again = Running(attempt, store)
    again.supervisor()
    assert again.go() == "completed"


def test_a_try_on_another_host_is_the_next_one(attempt: Attempt, store: Store) -> None:
    tries = Tries(store, attempt_folder(store, attempt).url)
    assert tries.begin("a", "key", "here") == 1
    assert not tries.superseded("a")
    assert tries.begin("b", "key", "there") == 2
    assert [each.lost for each in tries.read()] == ["host here fell silent", None]
    assert (tries.superseded("a"), tries.superseded("b"), tries.superseded("unknown")) == (True, False, False)
    assert tries.begin("c", "another key", "there") == 1
    running = Running(attempt, store)
    running.supervisor()
    running.go()
    record = finished_run(store, attempt)
    assert record is not None
    assert record.tries == 1


def test_an_agent_that_was_begun_anew_elsewhere_is_ended(
    attempt: Attempt, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    running = Running(attempt, store)
    supervisor = running.supervisor()
    Tries(store, attempt_folder(store, attempt).url).begin("other", "key", "there")
    assert host.superseded() == []  # its orchestrator is alive, and notices it by its lease
    monkeypatch.setattr("sandbox.host.slots.alive", lambda _: False)
    [found] = host.superseded()
    assert found.claim.run_id == "g-diabetes-0"
    assert [each.claim for each in host.end_superseded()] == [found.claim]
    assert not running.files.workdir.exists()
    until(lambda: not Path(f"/proc/{supervisor}").exists() or running.thread.is_alive() is False)
    running.thread.join(120)
