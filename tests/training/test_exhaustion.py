"""What clients and commands that want everything get: each test has a row in docs/security.md."""

from __future__ import annotations

import json
import socket
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from websockets.sync.client import connect

from common import guard
from storage.tables import read_table
from tests.stores import Store
from tests.training.conftest import COMPETITION, DOCKER, act, run
from tests.training.served import Served, served
from tests.waiting import until
from training.episodes import Episodes
from training.server import CONNECTIONS

IMPATIENT = "import sandbox.serving, training.server; sandbox.serving.HEADER_SECONDS = training.server.BODY_SECONDS = 1"


@pytest.fixture(scope="module")
def server(store: Store, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """A server that waits for a second where it otherwise waits longer."""
    with served(store, tmp_path_factory.mktemp("served"), "-c", COMPETITION, "--warm", "0", first=IMPATIENT) as server:
        yield server


def opened(server: Served) -> socket.socket:
    """A connection to a server."""
    host, port = server.url.rpartition("@")[2].split(":")
    connection = socket.create_connection((host, int(port)), 10)
    connection.settimeout(10)
    return connection


def head(server: Served, length: int) -> bytes:
    """The head of a request with the token."""
    login = guard.basic(server.url.removeprefix("http://").partition("@")[0])
    return f"POST /reset HTTP/1.1\r\nHost: x\r\nAuthorization: {login}\r\nContent-Length: {length}\r\n\r\n".encode()


def test_connections_that_say_nothing_or_too_little(server: Served) -> None:
    with connect(f"{server.url.replace('http', 'ws', 1)}/ws") as websocket, opened(server) as silent:
        with opened(server) as slow:
            slow.sendall(head(server, 1000) + b"{")
            answer = b"".join(iter(lambda: slow.recv(4096), b""))
            assert answer.startswith(b"HTTP/1.1 408")
            assert b"has to arrive within 1 seconds" in answer
        assert silent.recv(1) == b""
        time.sleep(1)  # a WebSocket may be silent for longer
        websocket.send('{"type": "state"}')
        assert json.loads(websocket.recv(10))["data"]["episode_id"] is None


def test_connections_by_the_thousand(server: Served) -> None:
    connections = [opened(server) for _ in range(CONNECTIONS + 50)]
    try:
        refused = connections[-1].recv(1)
        assert refused == b""
    finally:
        for connection in connections:
            connection.close()
    until(lambda: server.post("reset", seed=-1).status_code == 422, what="an answer")


@pytest.mark.parametrize("seed", [2**63, 10**400])
def test_a_seed_that_no_table_takes(server: Served, seed: int) -> None:
    refused = server.post("reset", seed=seed)
    assert (refused.status_code, refused.json()["detail"]) == (409, "a seed is a whole number from 0 to 2^63 - 1")


def test_metadata_without_end_are_not_kept(make_episodes: Callable[..., Episodes], store: Store) -> None:
    running = make_episodes(group="metadata").begin()
    act(running, "run", command="true", metadata={"padding": "x" * 1_000_000})
    running.close()
    assert store.local("episodes", "metadata", f"{running.id}.json").stat().st_size < 10_000


def test_sessions_that_nobody_closes(store: Store, tmp_path: Path) -> None:
    options = ("-c", COMPETITION, "--idle", "1s", "--warm", "0", "--name", "left")
    with served(store, tmp_path, *options) as server, connect(f"{server.url.replace('http', 'ws', 1)}/ws") as websocket:
        websocket.send('{"type": "reset"}')
        websocket.recv(60)
        for _ in range(6):
            assert server.post("reset").status_code == 200
        until(lambda: not server.folders, what="the end of all episodes")
        websocket.send('{"type": "step", "data": {"type": "submit"}}')
        assert "has ended" in str(websocket.recv(10))
    assert read_table(store, "episodes", ["left"]).end.tolist() == ["abandoned"] * 7


@pytest.mark.service("docker")
def test_a_command_that_prints_for_ever_leaves_the_processor_to_others(make_episodes: Callable[..., Episodes]) -> None:
    episode = make_episodes(isolation=DOCKER).begin().episode
    before = time.process_time()
    told = act(episode, "run", command="yes", seconds=3).observation
    assert told.exit_code == 137
    assert told.cut
    assert time.process_time() - before < 1
    assert run(episode, "echo on") == "on\n"


@pytest.mark.service("docker")
def test_files_of_ten_gigabytes(make_episodes: Callable[..., Episodes]) -> None:
    episode = make_episodes(isolation=DOCKER).begin().episode
    assert "File size limit exceeded" in str(act(episode, "run", command="truncate -s 10G code/big").observation.stderr)
    run(episode, "truncate -s 2047M submission/submission.csv; echo end >> submission/submission.csv")
    told = act(episode, "read", path="submission/submission.csv", offset=2047 << 20).observation
    assert told.content == "end\n"
    assert "is larger than 268,435,456 bytes" in act(episode, "check").observation.message
    step = act(episode, "run", command="for i in $(seq 10); do fallocate -l 1G code/$i; done")
    deadline = time.monotonic() + 30
    while not step.done:
        assert time.monotonic() < deadline
        step = act(episode, "run", command="sleep 0.5")
    assert "disk" in step.observation.info["end"]
    assert step.reward == 0
