"""Work folders of runs whose orchestrator was killed between the record and the end are collected, living ones kept."""

from __future__ import annotations

import contextlib
import os
import signal
from pathlib import Path

import pytest
from click.testing import CliRunner

from flows.commands.gc import command as gc
from flows.diagnosis.leftovers import check_scratch
from sandbox.process.backend import ProcessBackend
from storage.store import Store
from tasks.agent_run import run_agent, work_folder
from tasks.download import download_archive
from tasks.split import split_dataset
from tasks.wiring import storing
from tasks.wiring.attempts import attempts_of, finished_run
from tasks.wiring.context import RunContext
from tasks.wiring.requests import Attempt, RunRequest
from tasks.wiring.storing import _note_attempt, leftover_folders, remove_folder, remove_leftovers

pytestmark = pytest.mark.usefixtures("no_server")


@pytest.fixture
def attempt(tmp_path: Path) -> Attempt:
    """An attempt that has still to be made, on a prepared competition."""
    store = Store(str(tmp_path / "store"))
    split_dataset("diabetes", store.root, "v1", download_archive("diabetes", store.root))
    request = RunRequest(agent="dummy", run_group="g", store=store.root)
    (attempt,) = attempts_of(RunContext.of(request), "diabetes")
    return attempt


def killed(attempt: Attempt, before: str) -> Path:
    """Make the attempt in a process that is killed as it is about to call a function; the work folder it leaves."""
    if (child := os.fork()) == 0:
        place = storing if before == "publish" else ProcessBackend
        setattr(place, before, lambda *_: os.kill(os.getpid(), signal.SIGKILL))
        with contextlib.suppress(BaseException):
            run_agent(attempt)
        os._exit(1)  # it must not go on with the tests
    _, status = os.waitpid(child, 0)
    assert os.waitstatus_to_exitcode(status) == -signal.SIGKILL
    folder = work_folder(attempt, Store(attempt.request.store))
    assert (folder / "collected").is_dir()
    return folder


def test_a_folder_left_after_the_record_is_collected(attempt: Attempt) -> None:
    store = Store(attempt.request.store)
    folder = killed(attempt, "discard")
    assert finished_run(store, attempt)
    assert list(leftover_folders(store)) == [folder]
    assert list(leftover_folders(Store(f"{store.local()}-2"))) == [], "another store with the same groups"
    remove_leftovers(store)
    assert not folder.exists()
    assert finished_run(store, attempt)


def test_a_folder_left_before_the_record_still_has_the_result(attempt: Attempt) -> None:
    store = Store(attempt.request.store)
    folder = killed(attempt, "publish")
    assert finished_run(store, attempt) is None
    remove_leftovers(store)
    assert (folder / "collected" / "submission.csv").is_file()
    assert run_agent(attempt) == "completed"
    assert finished_run(store, attempt)
    assert not folder.exists()


def test_a_folder_in_use_and_one_of_another_key_are_kept(attempt: Attempt) -> None:
    store = Store(attempt.request.store)
    folder = killed(attempt, "discard")
    with storing.locked(folder / "lock") as mine:  # as its supervisor, or an orchestrator that waits for it
        assert mine is not None
        assert list(leftover_folders(store)) == []
        assert not remove_folder(folder)
    outcome = folder / "control" / "outcome.json"
    outcome.rename(outcome.with_suffix(".away"))  # as if the agent had not ended
    assert not remove_folder(folder)
    outcome.with_suffix(".away").rename(outcome)
    _note_attempt(folder, attempt.model_copy(update={"key": "of another agent"}))
    assert list(leftover_folders(store)) == []
    assert folder.exists()


def test_doctor_and_gc_name_it_and_remove_it(attempt: Attempt) -> None:
    store = Store(attempt.request.store)
    folder = killed(attempt, "discard")
    (finding,) = check_scratch(store)
    assert (finding.verdict, finding.remedy) == ("warn", "mlebench doctor --fix")
    arguments = ["--orphans", "--store", store.root]
    assert f"would remove scratch {folder.name}" in CliRunner().invoke(gc, [*arguments, "--dry-run"]).output
    assert folder.exists()
    assert f"removed scratch {folder.name}" in CliRunner().invoke(gc, arguments).output
    assert not folder.exists()
    (finding,) = check_scratch(store)
    assert finding.verdict == "ok"
