"""The temporary Prefect server of a process: what uses it, and how it starts."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import Any

import httpx
import psutil
import pytest
from prefect.settings import PREFECT_API_URL, get_current_settings, temporary_settings

from common.errors import UserError
from common.guard import basic, new_credential
from flows import temporary_server
from tasks.wiring.prefect_server import served


def test_flows_use_it_and_take_it_for_none_that_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PREFECT_API_URL", raising=False)  # commands that ran in this process set it to nothing
    server = temporary_server.start()
    assert server is not None
    assert temporary_server.start() is server, "there is one for all flows of a process"
    server.wait()
    try:
        assert get_current_settings().api.url == server.api_url
        assert not served()
        for name in ("PREFECT_API_URL", "PREFECT_API_AUTH_STRING"):
            assert not os.environ.get(name), "child processes would take it for one that stays"
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


def test_the_temporary_server_answers_its_process_only() -> None:
    server = temporary_server.start()
    assert server is not None
    server.wait()
    login = basic(server.credential)
    for headers, status in (
        ({}, 401),
        ({"Authorization": basic(new_credential())}, 401),
        ({"Authorization": login, "Host": "evil.test"}, 403),
        ({"Authorization": login, "Origin": "http://evil.test"}, 403),
        ({"Authorization": login, "Origin": "null"}, 403),
        ({"Authorization": login}, 200),
    ):
        for method, path, body in (("GET", "/admin/version", b""), ("POST", "/flows/count", b"{}")):
            url = f"{server.api_url}{path}"
            answer = httpx.request(method, url, headers=headers, content=body, trust_env=False)
            assert answer.status_code == status, (method, headers)
    process = psutil.Process(server._process.pid)
    assert server.credential.partition(":")[2] not in " ".join(process.cmdline())
    listening = [each.laddr.ip for each in process.net_connections() if each.status == psutil.CONN_LISTEN]
    assert listening == ["127.0.0.1"]
    asked = httpx.options(f"{server.api_url}/flows/", headers={"Origin": "http://evil.test"}, trust_env=False)
    assert (asked.status_code, asked.headers.get("access-control-allow-origin")) == (403, None)


def test_a_server_that_asks_for_a_login_is_one_line() -> None:
    server = temporary_server.start()
    assert server is not None
    server.wait()
    command = [sys.executable, "-m", "flows.cli", "watch", "some-group"]
    env = {**os.environ, "PREFECT_API_URL": server.api_url, "PREFECT_API_AUTH_STRING": "mlebench:another"}
    done = subprocess.run(command, env=env, capture_output=True, text=True, check=False, timeout=120)
    assert done.returncode == 1
    (line,) = [each for each in done.stderr.splitlines() if each.startswith("mlebench:")]
    assert "asks for a login; set PREFECT_API_AUTH_STRING" in line
    assert "Traceback" not in done.stderr


def test_why_the_temporary_server_does_not_start_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    class Popen(subprocess.Popen[bytes]):
        def __init__(self, _command: list[str], **options: Any) -> None:
            super().__init__([sys.executable, "-c", "raise SystemExit('no such database')"], **options)

    monkeypatch.setattr(temporary_server.subprocess, "Popen", Popen)
    with pytest.raises(UserError, match="did not start: no such database"):
        temporary_server.TemporaryServer().wait()
