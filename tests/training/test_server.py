"""`mlebench serve`: what clients may send, and what is left when they or the server go."""

from __future__ import annotations

import json
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx
import pytest
from websockets.exceptions import InvalidStatus
from websockets.sync.client import connect

from storage.tables import read_table
from tests.stores import Store
from tests.training.conftest import COMPETITION, SAMPLE
from tests.training.served import ROOT, Served, served
from tests.waiting import until


@pytest.fixture(scope="module")
def server(store: Store, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with served(store, tmp_path_factory.mktemp("served"), "-c", COMPETITION, "--warm", "0") as server:
        yield server


def socket(server: Served) -> Any:
    return connect(f"{server.url.replace('http', 'ws', 1)}/ws", max_size=None, close_timeout=1)


def ask(connection: Any, type: str, **data: Any) -> dict[str, Any]:
    connection.send(json.dumps({"type": type, "data": data}))
    answer: dict[str, Any] = json.loads(connection.recv(60))
    return answer


def without_token(server: Served) -> str:
    return re.sub("//.*@", "//", server.url)


def test_an_episode_over_http(server: Served) -> None:
    begun = server.post("reset", competition=COMPETITION, seed=5).json()
    assert begun["observation"]["description"].startswith("# ")
    assert (begun["reward"], begun["done"]) == (None, False)
    id = begun["episode_id"]
    assert server.act(id, "run", command="echo $SEED")["observation"]["stdout"] == "5\n"
    state = httpx.get(f"{server.url}/state", params={"episode_id": id}).json()
    assert state == {"episode_id": id, "step_count": 1, "competition": COMPETITION, "done": False}
    server.act(id, "run", command=SAMPLE)
    ended = server.act(id, "submit")
    assert (ended["done"], ended["observation"]["info"]["valid"]) == (True, True)
    assert server.post("step", episode_id=id, action={"type": "submit"}).status_code in (404, 409)
    until(lambda: not server.folders, what="the end of its sandbox")


def test_an_episode_ends_with_its_connection(server: Served) -> None:
    with socket(server) as connection:
        assert ask(connection, "reset")["type"] == "observation"
        assert len(server.folders) == 1
        connection.send(json.dumps({"type": "step", "data": {"type": "run", "command": "sleep 50"}}))
    until(lambda: not server.folders, seconds=20, what="the end of its sandbox")


def test_an_episode_that_is_begun_ends_the_one_before(server: Served) -> None:
    with socket(server) as connection:
        first = ask(connection, "reset") and ask(connection, "state")["data"]["episode_id"]
        second = ask(connection, "reset") and ask(connection, "state")["data"]["episode_id"]
        assert first != second
        assert len(server.folders) == 1
        connection.send('{"type": "close"}')
    until(lambda: not server.folders, what="the end of its sandbox")


@pytest.mark.parametrize(
    ("message", "code"),
    [
        ("{", "INVALID_JSON"),
        (b'{"type": "state"}', "INVALID_JSON"),
        ("[" * 100_000, "INVALID_JSON"),
        ("[]", "INVALID_JSON"),
        ('{"type": "mcp"}', "UNKNOWN_TYPE"),
        ('{"type": "step", "data": 1}', "VALIDATION_ERROR"),
        ('{"type": "step", "data": {"type": "pickle"}}', "VALIDATION_ERROR"),
        ('{"type": "step", "data": {"type": "run", "command": "x", "user": "root"}}', "VALIDATION_ERROR"),
        ('{"type": "step", "data": {"type": "submit"}}', "EXECUTION_ERROR"),
        ('{"type": "reset", "data": {"seed": -1}}', "VALIDATION_ERROR"),
        ('{"type": "reset", "data": {"competition": "../x"}}', "EXECUTION_ERROR"),
        ('{"type": "reset", "data": {"episode_id": "../x"}}', "EXECUTION_ERROR"),
    ],
)
def test_a_wrong_message_is_an_error_and_not_the_end(server: Served, message: str | bytes, code: str) -> None:
    with socket(server) as connection:
        connection.send(message)
        answer = json.loads(connection.recv(30))
        assert (answer["type"], answer["data"]["code"]) == ("error", code)
        assert ask(connection, "state")["data"]["episode_id"] is None


def test_only_clients_with_the_token_are_answered(server: Served) -> None:
    bare = without_token(server)
    assert httpx.get(f"{bare}/health").status_code == 200
    for method, path in (("GET", "metadata"), ("GET", "state"), ("GET", "schema"), ("POST", "reset"), ("POST", "step")):
        assert httpx.request(method, f"{bare}/{path}").status_code == 401
        assert httpx.request(method, f"{bare}/{path}", auth=("mlebench", "guess")).status_code == 401
    with pytest.raises(InvalidStatus):
        connect(f"{bare.replace('http', 'ws', 1)}/ws").close()
    assert httpx.get(f"{server.url}/metadata", headers={"Origin": "http://evil.example"}).status_code == 401


def test_messages_are_limited_in_size(server: Served) -> None:
    assert server.post("reset", padding="x" * (9 << 20)).status_code == 413
    with socket(server) as connection:
        connection.send("x" * (9 << 20))
        with pytest.raises(Exception, match=r"1009|close"):
            connection.recv(30)


def test_there_are_at_most_as_many_episodes_as_slots(server: Served) -> None:
    begun = [server.post("reset") for _ in range(5)]
    assert [each.status_code for each in begun] == [200] * 4 + [503]
    assert begun[-1].json()["code"] == "CAPACITY_REACHED"
    for each in begun[:4]:
        server.post("close", episode_id=each.json()["episode_id"])
    assert not server.folders


def test_of_two_resets_with_one_episode_id_one_begins(server: Served) -> None:
    with ThreadPoolExecutor(2) as clients:
        answers = list(clients.map(lambda _: server.post("reset", episode_id="twice"), range(2)))
    begun, refused = sorted(answers, key=lambda answer: answer.status_code)
    assert (begun.status_code, begun.json()["episode_id"]) == (200, "twice")
    assert (refused.status_code, refused.json()["detail"]) == (409, "an episode twice is in progress")
    assert server.act("twice", "run", command="echo mine")["observation"]["stdout"] == "mine\n"
    server.post("close", episode_id="twice")
    assert not server.folders


def test_schemas_describe_the_messages(server: Served) -> None:
    schemas = httpx.get(f"{server.url}/schema").json()
    actions = ["run", "read", "write", "check", "score", "public_score", "submit"]
    assert schemas["action"]["properties"]["type"]["enum"] == actions
    assert {"left", "stdout", "best", "improved", "info"} <= schemas["observation"]["properties"].keys()
    assert COMPETITION in httpx.get(f"{server.url}/metadata").json()["description"]


def test_idle_episodes_end(store: Store, tmp_path: Path) -> None:
    with served(store, tmp_path, "-c", COMPETITION, "--idle", "1s", "--warm", "0", "--name", "idle") as server:
        id = server.post("reset").json()["episode_id"]
        until(lambda: not server.folders, what="the end of the idle episode")
        assert server.post("step", episode_id=id, action={"type": "submit"}).status_code in (404, 409)
    assert read_table(store, "episodes", ["idle"]).end.tolist() == ["abandoned"]


def test_a_server_that_ends_leaves_nothing(store: Store, tmp_path: Path) -> None:
    with served(store, tmp_path, "-c", COMPETITION) as server:
        server.post("reset")
        assert server.folders
    assert not list(tmp_path.glob("episodes/*-*"))


@pytest.mark.parametrize("backend", ["process", pytest.param("docker", marks=pytest.mark.service("docker"))])
def test_the_next_server_ends_what_a_killed_one_has_left(store: Store, tmp_path: Path, backend: str) -> None:
    options = ("-c", COMPETITION, "--warm", "0", "--backend", backend, "--allow-untrusted")
    with served(store, tmp_path, *options) as server:
        id = server.post("reset").json()["episode_id"]
        server.act(id, "run", command="sleep 1000 & echo")
        left = server.folders
        server.process.send_signal(signal.SIGKILL)
        server.process.wait()
    assert [path for path in left if path.exists()] == left
    with served(store, tmp_path, *options) as server:
        assert not server.folders
        if backend == "docker":
            assert not _containers(left[0])


def _containers(workdir: Path) -> list[Any]:
    from sandbox.docker.engine import connect, labelled

    client = connect()
    return list(client.containers.list(all=True, filters=labelled(workdir=str(workdir))))


def test_the_token_is_that_of_the_file(store: Store, tmp_path: Path) -> None:
    file = tmp_path / "token"
    with served(store, tmp_path / "1", "-c", COMPETITION, "--token-file", str(file)) as server:
        assert file.read_text().strip() in server.url
        assert file.stat().st_mode & 0o777 == 0o600
        token = file.read_text()
    with served(store, tmp_path / "2", "-c", COMPETITION, "--token-file", str(file)) as server:
        assert token.strip() in server.url


@pytest.mark.parametrize(
    ("options", "code", "message"),
    [
        ((), 2, "name the competitions to serve"),
        (("-c", "leaf-classification", "--allow-test-scores"), 1, "Lite competitions, on which agents are evaluated"),
        (("-c", COMPETITION), 1, "accept that with --allow-test-scores"),
        (("-c", "leaf-classification--rows50-seed0"), 1, "Lite competitions, on which agents are evaluated"),
        (("-c", "cifar", "--allow-test-scores"), 2, "unknown competition"),
        (("-c", COMPETITION, "--allow-test-scores", "--backend", "process"), 1, "--allow-untrusted"),
        (("-c", COMPETITION, "--allow-test-scores", "--host", "192.0.2.1"), 1, "port 8765 of 192.0.2.1 cannot be used"),
    ],
)
def test_what_cannot_be_served_is_refused_in_one_line(
    store: Store, options: tuple[str, ...], code: int, message: str
) -> None:
    command = [sys.executable, "-P", "-m", "flows.cli", "serve", "--store", store.root, *options]
    ended = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False, timeout=60)
    assert ended.returncode == code
    assert message in " ".join(ended.stderr.split())
    assert "Traceback" not in ended.stderr
