"""Commands of a fleet: what they say of a group whose command was killed, and of notifications."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from uuid import uuid4

import pytest
from prefect import flow, get_client
from prefect.states import Cancelling, Running

from flows.cli import main
from flows.diagnosis import zombies
from flows.fleet import notifications, queues
from flows.fleet.pool import group_tag
from storage.runs.folders import RunFolder
from tests.agents import noting, write_agent
from tests.stores import Store
from tests.waiting import until


@flow
def hands_out() -> None: ...


def test_a_command_that_was_killed_is_not_waited_for(
    store: Store, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(queues, "require_server", lambda *_: None)  # the temporary one of these tests is used
    monkeypatch.setattr(zombies, "BEATS", 0)  # it is silent at once
    with get_client(sync_client=True) as client:
        tags = [group_tag("killed")]
        run = client.create_flow_run(hands_out, name="dummy as killed", tags=tags, state=Running())
    assert main(["watch", "killed", "--store", store.root]) == 1
    said = capfd.readouterr().err
    assert f"{run.name}: silent no sign since " in said
    assert "has probably died" in said
    assert "run it again with --run-group killed" in said


def test_notifications_are_removed_unless_it_is_only_shown_what_would_be(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(queues, "require_server", lambda *_: None)

    def notify(*options: str, code: int = 0) -> str:
        assert main(["notify", *options]) == code
        return "".join(capfd.readouterr())

    with get_client(sync_client=True) as client:
        for automation in notifications.automations(uuid4()):
            client.create_automation(automation.model_copy(update={"actions": []}))
    shown = notify("--off", "--dry-run")
    assert "would remove notification of finished groups" in shown
    assert "3 notifications would be removed" in shown
    assert "3 notifications removed" in notify("--off")
    assert "0 notifications removed" in notify("--off")
    assert "--dry-run is for --off only" in notify("--slack", "https://x", "--dry-run", code=2)


@pytest.mark.usefixtures("served")
def test_a_local_run_that_is_cancelled_in_the_ui_ends_as_cancelled(store: Store, tmp_path: Path) -> None:
    write_agent(tmp_path / "clicked", noting(tmp_path, "sleep 1000"))
    command = ["run", "-c", "diabetes", "--agent", "clicked", "--run-group", "clicked", "--store", store.root]
    with subprocess.Popen(
        [sys.executable, "-m", "flows.cli", *command], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    ) as process:
        begun = tmp_path / "starts-diabetes"
        until(begun.exists, seconds=200, what="the agent", may_yet=lambda: process.poll() is None)
        with get_client(sync_client=True) as client:
            (run,) = [each for each in client.read_flow_runs() if each.name.startswith("clicked on")]
            client.set_flow_run_state(run.id, Cancelling())  # as the button does
        output, _ = process.communicate(timeout=120)
    assert process.returncode == 130, output
    print(output)
    record = RunFolder(store, "clicked", "diabetes", 0).read_run()
    assert record is not None
    assert (record.status, record.submission_exists) == ("cancelled", True)
    with get_client(sync_client=True) as client:
        state = client.read_flow_run(run.id).state
    assert state is not None
    assert state.is_cancelled(), state
