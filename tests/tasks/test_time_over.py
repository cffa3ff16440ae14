"""The time for agents is over just as one is to start: the run fails with that reason, and was not tried."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path

import pytest

from common.errors import UserError
from storage.runs.folders import finished_folders
from storage.runs.tries import Tries
from storage.store import Store
from tasks import agent_run
from tasks.download import download_archive
from tasks.split import split_dataset
from tasks.wiring.attempts import attempt_folder, attempts_of
from tasks.wiring.backends import stop_all, without_agents
from tasks.wiring.context import RunContext
from tasks.wiring.requests import RunRequest


@pytest.mark.usefixtures("no_server")
@pytest.mark.parametrize(
    ("reason", "said"),
    [("stopped: the time is over", "stopped: the time is over"), ("", "the backend is closed: no run can be started")],
)
def test_a_run_that_comes_too_late_says_why(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, reason: str, said: str
) -> None:
    store = Store(str(tmp_path / "store"))
    split_dataset("diabetes", store.root, "v1", download_archive("diabetes", store.root))
    request = RunRequest(agent="dummy", run_group="late", store=store.root)
    (attempt,) = attempts_of(RunContext.of(request), "diabetes")
    with ExitStack() as ended:

        def end(*_: object) -> None:  # by then the run has its backend
            if reason:
                ended.enter_context(without_agents(reason))
            stop_all()

        monkeypatch.setattr(agent_run, "note_overwriting", end)
        with pytest.raises(UserError) as caught:
            agent_run.run_agent(attempt)
    assert str(caught.value) == said
    assert caught.value.__cause__ is not caught.value
    assert finished_folders(store, "late") == []
    assert Tries(store, attempt_folder(store, attempt).url).read() == []
