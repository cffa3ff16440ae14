"""What another user of the machine prepares before an operator's servers start: a port, a directory."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest

from common.guard import HOST
from deployments.background import ServiceError
from deployments.up import Installation
from flows.temporary_server import TemporaryServer
from tests.deployments.installation import ROOT

pytestmark = pytest.mark.slow


class _Impostor(BaseHTTPRequestHandler):
    """Says that it is well, and keeps what it is asked."""

    asked: list[str]

    def do_GET(self) -> None:
        self.asked.append(f"{self.path} {self.headers.get('Authorization')}")
        self.send_response(200)
        self.end_headers()
        self.wfile.write(b"true")

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def impostor() -> Iterator[HTTPServer]:
    _Impostor.asked = []
    with HTTPServer((HOST, 0), _Impostor) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield server
        server.shutdown()


def test_a_program_that_has_the_port_of_the_server_is_asked_nothing(tmp_path: Path, impostor: HTTPServer) -> None:
    installation = Installation(tmp_path / "state", impostor.server_port)
    with pytest.raises(ServiceError, match=f"port {impostor.server_port} .* choose another"):
        installation.up()
    assert _Impostor.asked == []
    assert installation.down() == []


def test_nobody_takes_the_port_of_the_temporary_server_before_it_listens() -> None:
    server = TemporaryServer()
    try:
        port = int(server.api_url.rpartition(":")[2].removesuffix("/api"))
        with pytest.raises(OSError, match="in use"):
            socket.create_server((HOST, port))
    finally:
        server.stop()


@pytest.mark.skipif(os.getuid() != 0, reason="only root can give files to another user")
@pytest.mark.parametrize("what", ["state", "login"])
def test_a_login_that_another_user_made_is_not_used(tmp_path: Path, what: str) -> None:
    state = tmp_path / "state"
    state.mkdir()
    (state / "login").touch(mode=0o600)
    os.chown(state if what == "state" else state / "login", 65534, 65534)
    with pytest.raises(ServiceError, match=r"others know|another user"):
        Installation(state).up()


def test_an_older_state_directory_is_closed_to_others(tmp_path: Path) -> None:
    """The database and the logs in it are readable to all."""
    state = tmp_path / "state"
    state.mkdir(mode=0o755)
    (state / "login").touch(mode=0o644)
    with pytest.raises(ServiceError, match="others know"):
        Installation(state).up()
    assert state.stat().st_mode & 0o777 == 0o700


def test_a_server_that_does_not_start_ends_with_an_error(tmp_path: Path) -> None:
    command = [sys.executable, "-P", "-m", "common.serving", "flows.prefect_server", "--port", "0"]
    ended = subprocess.run(
        command,
        cwd=ROOT,
        env={
            **os.environ,
            "PYTHONPATH": str(ROOT),
            "PREFECT_SERVER_API_AUTH_STRING": "a:b",
            "PREFECT_SERVER_DATABASE_CONNECTION_URL": f"sqlite+aiosqlite:///{tmp_path}/none/p.db",
        },
        capture_output=True,
        timeout=120,
        check=False,
    )
    assert ended.returncode == 3
