"""How attempts and workers of a fleet end: cancelled in the UI or by command, and when their server is away."""

from __future__ import annotations

import os
import signal
import time

import psutil
import pytest

from tests.deployments.fleet import WAITING, Fleet
from tests.deployments.installation import until_served

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900), pytest.mark.service("postgres")]

STUBBORN = f"trap '' TERM\n{WAITING}"


def test_an_attempt_that_is_cancelled_in_the_ui_is_neither_failed_nor_timed_out(fleet: Fleet) -> None:
    agent = fleet.agent("clicked", STUBBORN)
    fleet.worker("olga", 1)
    with fleet.start(
        "run", "-c", "digits", "--agent", "clicked", "--pool", "agents", "--run-group", "clicked"
    ) as process:
        until_served("the agent", lambda: len(agent.processes()) == 2, 400)
        os.killpg(process.pid, signal.SIGTERM)
        output, _ = process.communicate(timeout=60)
    assert process.returncode == 130, output
    assert "The agents of group clicked go on" in output
    (run,) = fleet.flow_runs("group:clicked")
    with fleet.start("watch", "clicked") as watching:
        began = time.monotonic()
        fleet.api(f"/flow_runs/{run['id']}/set_state", {"state": {"type": "CANCELLING"}})  # as the button does
        until_served("the agent's end", lambda: agent.processes() == [], 30)
        output, _ = watching.communicate(timeout=120)
    assert time.monotonic() - began < 60
    assert watching.returncode == 130, output
    assert "cancelled digits seed 0" in output, output
    assert "successfully" not in output
    assert "failed" not in output
    record = until_served("the record", lambda: fleet.record("clicked", "digits"))
    assert (record.status, record.submission_exists) == ("cancelled", True)
    assert fleet.states("group:clicked") == ["CANCELLED"]


def test_a_command_whose_attempt_is_cancelled_says_so(fleet: Fleet) -> None:
    agent = fleet.agent("told", WAITING)
    fleet.worker("petra", 1)
    command = ("run", "-c", "digits", "--agent", "told", "--pool", "agents", "--run-group", "told")
    with fleet.start(*command) as process:
        until_served("the agent", lambda: len(agent.processes()) == 2, 400)
        assert "1 cancelled, 0 not confirmed" in fleet.mlebench("cancel", "told/digits")
        output, _ = process.communicate(timeout=120)
    assert process.returncode == 130, output
    assert "1 reused, 1 cancelled" in output or "1 done, 1 cancelled" in output, output


def test_workers_end_though_their_server_is_away_and_their_agents_go_on(fleet: Fleet) -> None:
    agent = fleet.agent("outlasts", WAITING)
    busy = fleet.worker("rita", 1)
    with fleet.detached(agent, "outlasts"):
        pass
    numbers = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
    idle = {number: fleet.worker(f"quinn-{number.name.lower()}", 1) for number in numbers}
    busy.send_signal(signal.SIGTERM)
    fleet.processes.stop("server")
    try:
        for number, worker in idle.items():
            worker.send_signal(number)
        _, alive = psutil.wait_procs([busy, *idle.values()], timeout=60)
        assert not alive, "they wait for their server"
        assert len(agent.processes()) == 2
    finally:
        fleet.start_server()
