"""`mlebench watch` ends although the command that handed the attempts out was killed, and says so."""

from __future__ import annotations

import pytest
from prefect import flow, get_client
from prefect.states import Running

from flows.cli import main
from flows.diagnosis import zombies
from flows.fleet import queues
from flows.fleet.pool import group_tag
from tests.stores import Store


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
