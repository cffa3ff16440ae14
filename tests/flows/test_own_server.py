"""The temporary Prefect server of a process: what uses it, and how it starts."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import Any

import pytest
from prefect.settings import PREFECT_API_URL, get_current_settings, temporary_settings

from flows import temporary_server
from tasks.wiring.server import served


def test_flows_use_it_and_take_it_for_none_that_stays() -> None:
    server = temporary_server.start()
    assert server is not None
    assert temporary_server.start() is server, "there is one for all flows of a process"
    server.wait()
    try:
        assert get_current_settings().api.url == server.api_url
        assert not served()
        for name in ("PREFECT_API_URL", "PREFECT_API_AUTH_STRING"):
            assert name not in os.environ, "child processes would take it for one that stays"
    finally:
        temporary_server.stop()
    try:
        assert get_current_settings().api.url is None
        with temporary_settings({PREFECT_API_URL: "http://127.0.0.1:4200/api"}):
            assert served()
            assert temporary_server.start() is None
    finally:
        again = temporary_server.start()  # for the other tests of this folder
        assert again is not None
        again.wait()


def test_a_port_that_is_taken_is_left_to_its_owner_and_other_faults_are_told(monkeypatch: pytest.MonkeyPatch) -> None:
    commands = [
        [sys.executable, "-c", "raise SystemExit(3)"],  # as uvicorn ends if the port is taken
        [sys.executable, "-c", "raise SystemExit('no such database')"],
    ]
    started: list[list[str]] = []

    class Popen(subprocess.Popen[bytes]):
        def __init__(self, command: list[str], **options: Any) -> None:
            started.append(command)
            super().__init__(commands[len(started) - 1], **options)

    monkeypatch.setattr(temporary_server.subprocess, "Popen", Popen)
    with pytest.raises(RuntimeError, match="did not start: no such database"):
        temporary_server.TemporaryServer({}).wait()
    ports = [command[command.index("--port") + 1] for command in started]
    assert len(set(ports)) == 2
