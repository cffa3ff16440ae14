"""When the time of a nightly is over its agents end, and no more are started."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psutil
import pytest

from flows.full_benchmark import full_benchmark
from flows.watching.outcome import PartlyFailed
from sandbox.isolation import Isolation
from storage.runs.folders import finished_folders
from tasks.wiring import backends
from tasks.wiring.backends import agents_time_limit
from tasks.wiring.requests import RunRequest
from tests.agents import write_agent
from tests.sandbox.docker.conftest import base_image
from tests.stores import Store
from tests.waiting import until

__all__ = ["base_image"]


class Timer:
    """A timer that rings when the test says so."""

    def __init__(self, _seconds: float, ring: Callable[[], None]) -> None:
        self.ring, self.daemon = ring, False
        TIMERS.append(self)

    def start(self) -> None:
        pass

    cancel = join = start


TIMERS: list[Timer] = []


def test_agents_end_with_their_time(store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    agent = tmp_path / "endless"
    agent.mkdir()
    (agent / "agent.yaml").write_text("name: endless\ndescription: never ends\ntrusted: true\n")
    (agent / "start.sh").write_text(f"#!/bin/bash\necho $$ > {tmp_path}/pid-$COMPETITION_ID\nexec sleep 100000\n")
    monkeypatch.setattr(backends, "Timer", Timer)

    def ring_once_one_runs() -> None:
        until(lambda: any(path.read_text().strip() for path in tmp_path.glob("pid-*")), 250, what="an agent")
        TIMERS[-1].ring()

    ringing = threading.Thread(target=ring_once_one_runs)
    ringing.start()
    with pytest.raises(PartlyFailed) as caught, agents_time_limit(72000.0, "the nightly"):
        full_benchmark(
            ["diabetes", "digits"], RunRequest(agent=str(agent), run_group="endless", store=store.root, seeds=2)
        )
    ringing.join()
    failed = {each.what: each.message for each in caught.value.outcomes if each.result == "failed"}
    assert set(failed) == {f"{name} seed {seed}" for name in ("diabetes", "digits") for seed in (0, 1)}
    assert set(failed.values()) == {"stopped: the time of the nightly is over (20.0 h); run it again to continue"}
    pids = [int(path.read_text()) for path in tmp_path.glob("pid-*")]
    assert not [pid for pid in pids if psutil.pid_exists(pid)], "their processes are gone"
    assert finished_folders(store, "endless") == [], "the next start makes these runs"


@pytest.mark.service("docker")
@pytest.mark.usefixtures("base_image")
def test_containers_end_with_their_time(store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from sandbox.docker.engine import connect

    agent = write_agent(tmp_path / "agents" / "endless", "exec sleep 100000\n", trusted=False)
    monkeypatch.setattr(backends, "Timer", Timer)
    seen: set[str] = set()

    def ours() -> list[Any]:
        return [each for each in connect().containers.list(all=True) if str(tmp_path) in json.dumps(each.labels)]

    def ring_once_it_runs() -> None:
        until(lambda: [each for each in ours() if each.status == "running"], 250, what="a container", pause=0.2)
        seen.update(str(each.id) for each in ours())
        TIMERS[-1].ring()

    ringing = threading.Thread(target=ring_once_it_runs)
    ringing.start()
    request = RunRequest(agent=str(agent), run_group="endless", store=store.root, isolation=Isolation("docker"))
    with pytest.raises(PartlyFailed) as caught, agents_time_limit(72000.0, "the nightly"):
        full_benchmark(["digits"], request)
    ringing.join()
    (failed,) = (each for each in caught.value.outcomes if each.result == "failed")
    assert failed.message == "stopped: the time of the nightly is over (20.0 h); run it again to continue"
    assert seen
    assert not ours(), "its container is gone"
