"""Many episodes at a time, on one server that is killed in between, and on three servers of one host."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import psutil
import pytest
from websockets.exceptions import WebSocketException
from websockets.sync.client import connect

from sandbox.docker import engine
from storage.tables import read_table
from tests.stores import Store
from tests.training.conftest import COMPETITION
from tests.training.served import Served, served
from tests.waiting import until

EPISODES = 200
AGENTS = 6


def attempt(url: str, number: int) -> bool | None:
    """An episode, of which two of three are submitted. Whether its sandbox was new; None if it did not come to its end.

    The server may have ended, or have no slot.
    """
    with (
        contextlib.suppress(OSError, WebSocketException, TimeoutError),
        connect(f"{url.replace('http', 'ws', 1)}/ws", max_size=None, close_timeout=1) as connection,
    ):

        def ask(kind: str, **data: Any) -> dict[str, Any]:
            connection.send(json.dumps({"type": kind, "data": data}))
            answer: dict[str, Any] = json.loads(connection.recv(120))
            return dict(answer["data"])

        if ask("reset", seed=number).get("code"):
            return None
        told = ask("step", type="run", command="ls code tmp; echo $SEED > code/seed; cat code/seed")
        if "observation" not in told:
            return None
        if number % 3:
            ask("step", type="submit")
        return bool(told["observation"]["stdout"] == f"code:\n\ntmp:\n{number}\n")
    return None


def flood(url: Callable[[int], str], count: int, at_a_time: int, on_end: Callable[[int], None] = lambda _: None) -> int:
    """Attempt episodes until all have come to their end; returns how many had a new sandbox."""
    ended, mutex = 0, threading.Lock()

    def persevere(number: int) -> bool:
        nonlocal ended
        while (fresh := attempt(url(number), number)) is None:
            time.sleep(0.2)
        with mutex:
            ended += 1
            on_end(ended)
        return fresh

    with ThreadPoolExecutor(at_a_time) as pool:
        return sum(pool.map(persevere, range(count)))


def containers(scratch: Path) -> list[Any]:
    """The containers of sandboxes below a folder."""
    client = engine.connect()
    with contextlib.closing(client):
        every = client.containers.list(all=True, filters=engine.labelled(workdir=""), ignore_removed=True)
        return [each.name for each in every if each.labels[engine.WORKDIR].startswith(str(scratch))]


def processes(scratch: Path) -> list[psutil.Process]:
    """Processes with a folder below this one in their command."""
    return [each for each in psutil.process_iter(["cmdline"]) if str(scratch) in " ".join(each.info["cmdline"] or ())]


@pytest.mark.slow
@pytest.mark.timeout(1800)
@pytest.mark.service("docker")
def test_a_flood_of_episodes_on_a_server_that_is_killed(
    store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    options = ("-c", COMPETITION, "--backend", "docker", "--name", "docker-flood", "--warm", "2")
    scratch, temporary = tmp_path / "scratch", tmp_path / "temporary"
    temporary.mkdir()
    monkeypatch.setenv("TMPDIR", str(temporary))
    killed = threading.Event()
    with contextlib.ExitStack() as servers:
        current = [servers.enter_context(served(store, scratch, *options, agents=AGENTS))]

        def on_end(ended: int) -> None:
            if ended == EPISODES // 3:
                current[0].process.send_signal(signal.SIGKILL)
                killed.set()
                current[0] = servers.enter_context(served(store, scratch, *options, agents=AGENTS))

        assert flood(lambda _: current[0].url, EPISODES, AGENTS + 2, on_end) == EPISODES
        assert killed.is_set()
        server = psutil.Process(current[0].process.pid)
        until(lambda: len(current[0].folders) <= 2, seconds=60, what="the end of all but those that were started ahead")
        until(lambda: len(containers(scratch)) <= 3 * 2, seconds=60, what="the end of their containers")
        assert server.num_fds() < 160  # also what the pools of connections to the engine keep
        assert server.num_threads() < 40
    assert not list(scratch.glob("episodes/*-*"))
    assert not containers(scratch)
    assert not processes(scratch)
    assert [path.name for path in temporary.rglob("*")] == [f"mlebench-{os.getuid()}"]  # the folder of sockets
    rows = read_table(store, "episodes", ["docker-flood"])
    assert set(rows.end) <= {"abandoned", "submitted"}
    assert len(rows) >= EPISODES - 2 * AGENTS


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_three_servers_of_one_host_share_its_slots(store: Store, tmp_path: Path) -> None:
    host = f"three-{os.getpid()}"
    most = 0
    with contextlib.ExitStack() as stack:
        servers: list[Served] = []
        for number in range(3):
            options = ("-c", COMPETITION, "--warm", "0", "--name", f"server-{number}")
            servers.append(stack.enter_context(served(store, tmp_path / str(number), *options, agents=2, host=host)))
        over = threading.Event()

        def watch() -> None:
            nonlocal most
            while not over.wait(0.02):
                most = max(most, sum(len(server.folders) for server in servers))

        watching = threading.Thread(target=watch)
        watching.start()
        try:
            assert flood(lambda number: servers[number % 3].url, 18, 9) == 18
        finally:
            over.set()
            watching.join()
    assert most == 2
    rows = read_table(store, "episodes", [f"server-{number}" for number in range(3)])
    assert len(rows) == 18
