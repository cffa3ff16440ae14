"""Attempts of one run to starve the services of other runs, or the orchestrator: memory, connections, descriptors."""

from __future__ import annotations

import contextlib
import json
import os
import re
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx
import pytest
from pydantic import SecretStr

from common.processes import start_time
from common.providers import Provider
from sandbox import serving
from sandbox.confinement import proxy
from sandbox.gateway import relay, request
from sandbox.gateway.policy import Budget, GatewayPolicy
from sandbox.limits import MIB
from sandbox.services.run_services import RECORDS, RunServices
from sandbox.services.separate import ProcessLimits, SeparateHost, environment
from sandbox.validation.checker import Check, Verdict
from tests import plain_http
from tests.sandbox.gateway.conftest import Gateway
from tests.sandbox.gateway.llm import KEY, ScriptedLLM
from tests.waiting import until

Open = Callable[..., Gateway]
MEMORY = 700 * MIB


class Checked:
    """A checker that remembers what it was asked about."""

    def __init__(self) -> None:
        self.seen: list[Path] = []

    def __call__(self, submission: Path) -> Verdict:
        self.seen.append(submission)
        return Verdict("valid")

    def close(self) -> None:
        pass


@pytest.fixture
def attempt(llm: ScriptedLLM, tmp_path: Path) -> Iterator[Callable[[str], RunServices]]:
    """Open the services of an attempt as the orchestrator does, in a process of their own."""
    opened: list[RunServices] = []

    def open_(name: str) -> RunServices:
        provider = Provider(base_url=f"{llm.url}/v1", api_key=SecretStr(KEY), price_list="openai")
        policy = GatewayPolicy(providers={"openai": provider}, budget=Budget(requests=100))
        limits = ProcessLimits(memory_bytes=MEMORY)
        services = RunServices(tmp_path / name, checks={"validation": Check(Checked())}, gateway=policy, process=limits)
        opened.append(services.__enter__())
        return services

    yield open_
    for each in opened:
        each.close()


def host(services: RunServices) -> SeparateHost:
    found = services._host
    assert isinstance(found, SeparateHost)
    return found


def post(services: RunServices, content: bytes) -> httpx.Response:
    headers = {"authorization": f"Bearer {services.env['OPENAI_API_KEY']}"}
    return plain_http.post(
        f"{services.env['OPENAI_BASE_URL']}/chat/completions", content=content, headers=headers, timeout=60
    )


def quietly(services: RunServices, content: bytes) -> None:
    with contextlib.suppress(httpx.HTTPError):
        post(services, content)


def chat(services: RunServices) -> int:
    return post(services, b'{"model": "gpt-4o", "messages": [{"role": "user", "content": "a"}]}').status_code


def peak(pid: int) -> int:
    """Most memory that a process has had, in bytes."""
    line = next(line for line in Path(f"/proc/{pid}/status").read_text().splitlines() if line.startswith("VmHWM"))
    return int(line.split()[1]) * 1024


@pytest.mark.parametrize("filling", [b"[],", b"{},", b'"a":1,', b'{"a":[]},', b"0,"])
def test_bodies_that_are_small_and_take_gigabytes_when_parsed(
    attempt: Callable[[str], RunServices], filling: bytes
) -> None:
    hostile, other = attempt("hostile"), attempt("other")
    many = filling * (10 * MIB // len(filling))
    start, end = (b"{", b"}") if filling.startswith(b'"') else (b"[", b"]")
    body = b'{"model": "gpt-4o", "messages": ' + start + many[:-1] + end + b"}"
    before = peak(os.getpid())
    with ThreadPoolExecutor(3) as pool:
        asked = [pool.submit(post, hostile, body) for _ in range(3)]
        assert chat(other) == 200
        assert {each.result().status_code for each in asked} == {413}
    assert peak(host(hostile).pid) < 300 * MIB
    assert peak(os.getpid()) - before < 200 * MIB
    assert chat(hostile) == 200


def test_memory_that_the_services_cannot_have(attempt: Callable[[str], RunServices]) -> None:
    """Whatever takes the memory: the request fails, or the process starts again, and the orchestrator lives."""
    hostile, other = attempt("hostile"), attempt("other")
    body = json.dumps({"model": "gpt-4o", "messages": [{"role": "user", "content": "x" * (30 * MIB)}]}).encode()
    with ThreadPoolExecutor(8) as pool:
        asked = [pool.submit(quietly, hostile, body) for _ in range(8)]
        assert chat(other) == 200
        for each in asked:
            each.result()
    assert peak(host(other).pid) < 300 * MIB
    until(lambda: host(hostile).pid and chat(hostile) == 200)


def test_services_that_are_killed_come_back_with_what_was_spent(
    attempt: Callable[[str], RunServices], llm: ScriptedLLM
) -> None:
    services = attempt("run")
    assert chat(services) == 200
    first = host(services).pid
    with llm.held(), ThreadPoolExecutor(1) as pool:
        asked = pool.submit(quietly, services, b'{"model": "gpt-4o", "messages": []}')
        until(lambda: llm.under_way == 1)
        os.kill(first, signal.SIGKILL)
        asked.result()
    until(lambda: host(services).pid not in (0, first))
    assert chat(services) == 200  # at the same address, which stayed open
    services.close()
    assert services.counts()["gateway_requests"] == 3


def test_services_have_none_of_the_operators_secrets(
    attempt: Callable[[str], RunServices], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "operators-secret")
    monkeypatch.setenv("MLEBENCH_LEDGER_KEY", "operators-secret")
    pid = host(attempt("run")).pid
    for name in ("environ", "cmdline"):
        content = Path(f"/proc/{pid}/{name}").read_bytes()
        assert b"operators-secret" not in content
        assert KEY.encode() not in content
    assert environment({"HTTPS_PROXY": "a", "KAGGLE_KEY": "b"}).keys() == {"HTTPS_PROXY", "PYTHONPATH"}


def test_services_end_with_their_orchestrator(tmp_path: Path) -> None:
    script = f"""
import time
from pathlib import Path
from sandbox.gateway.policy import GatewayPolicy
from sandbox.services.run_services import RunServices
from sandbox.services.separate import ProcessLimits
with RunServices(Path({str(tmp_path)!r}), gateway=GatewayPolicy(providers={{}}), process=ProcessLimits()) as services:
    print(services._host.pid, flush=True)
    time.sleep(600)
"""
    with subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, text=True) as orchestrator:
        assert orchestrator.stdout
        pid = int(orchestrator.stdout.readline())
        assert start_time(pid) is not None
        orchestrator.kill()
    until(lambda: start_time(pid) is None)


def test_a_file_that_is_no_submission_is_not_checked(attempt: Callable[[str], RunServices], tmp_path: Path) -> None:
    """Even if an agent takes over its services: the orchestrator answers about uploads of this run only."""
    services = attempt("run")
    answers = tmp_path / "answers.csv"
    answers.write_text("id,label\n")
    (tmp_path / "run" / RECORDS / "link").symlink_to(answers)
    sent: list[dict[str, Any]] = []

    class Sender:
        def send(self, **message: Any) -> None:
            sent.append(message)

    for path in (
        answers,
        tmp_path / "run" / RECORDS / "link",
        tmp_path / "run" / RECORDS / ".." / ".." / "answers.csv",
    ):
        host(services)._check("validation", [path], 1, Sender())  # type: ignore[arg-type]
    assert [message["verdict"]["outcome"] for message in sent] == ["failed"] * 3
    file = {"file": b"id,label\n1,2\n"}
    assert plain_http.post(f"{services.validation_url}/validate", files=file, timeout=60).json() == {
        "result": "Submission is valid."
    }


def test_descriptors_of_the_services(attempt: Callable[[str], RunServices]) -> None:
    """Connections by the hundred, to both services: most are closed, and those of another run are not touched."""
    hostile, other = attempt("hostile"), attempt("other")
    addresses = [httpx.URL(url or "") for url in (hostile.validation_url, hostile.env["OPENAI_BASE_URL"])]
    with contextlib.ExitStack() as held:
        connections = [
            held.enter_context(socket.create_connection((each.host, each.port or 0)))
            for each in addresses
            for _ in range(serving.CONNECTIONS + 60)
        ]
        until(lambda: sum(map(closed, connections)) >= 2 * 60)
        assert len(list(Path(f"/proc/{host(hostile).pid}/fd").iterdir())) < ProcessLimits().descriptors / 2
        assert chat(other) == 200
    until(lambda: chat(hostile) == 200)
    limits = Path(f"/proc/{host(hostile).pid}/limits").read_text()
    assert re.search(rf"Max open files +{ProcessLimits().descriptors} +{ProcessLimits().descriptors} ", limits)
    assert re.search(rf"Max data size +{MEMORY} +{MEMORY} ", limits)


def test_half_a_request_that_is_held_for_ever(gateway: Open, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its memory is given back when it does not arrive in time."""
    monkeypatch.setattr(request, "BODY_SECONDS", 0.5)
    gate = gateway(memory_bytes=64 * MIB)
    head = b"POST /v1/chat/completions HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer "
    head += gate.services.env["OPENAI_API_KEY"].encode() + b"\r\nContent-Length: 30000000\r\n\r\n{"
    with contextlib.ExitStack() as stack:
        address = (gate.http.base_url.host, gate.http.base_url.port or 0)
        held = [stack.enter_context(socket.create_connection(address, timeout=30)) for _ in range(4)]
        for connection in held:
            connection.sendall(head)
        assert gate.chat().is_success
        assert all(connection.recv(12) == b"HTTP/1.1 400" for connection in held)


def test_bodies_that_are_announced_and_dropped(gateway: Open, llm: ScriptedLLM) -> None:
    gate = gateway(memory_bytes=64 * MIB)
    head = b"POST /v1/chat/completions HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer "
    head += gate.services.env["OPENAI_API_KEY"].encode() + b"\r\nContent-Length: 30000000\r\n\r\n{"
    address = (gate.http.base_url.host, gate.http.base_url.port or 0)
    held = [socket.create_connection(address) for _ in range(20)]
    for connection in held:
        connection.sendall(head)
    for connection in held:
        connection.close()
    assert gate.chat().is_success
    assert len(llm.requests) == 1


def test_a_stream_that_nobody_reads(gateway: Open, llm: ScriptedLLM, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(relay, "UNREAD_SECONDS", 0.3)
    llm.large = 64 * MIB
    gate = gateway()
    before = peak(os.getpid())
    body = {"model": "gpt-4o", "messages": [], "stream": True}
    with gate.http.stream("POST", "/v1/chat/completions", json=body):
        until(lambda: gate.log)
    assert peak(os.getpid()) - before < 40 * MIB
    assert gate.log[0]["status"] == "ok"  # it was read to its end, and charged
    assert gate.log[0]["output_tokens"] == 50


def test_a_large_answer_to_a_request_that_costs_nothing(gateway: Open, llm: ScriptedLLM) -> None:
    llm.large = 16 * MIB
    assert gateway().http.get("/v1/models").status_code == 502


def closed(connection: socket.socket) -> bool:
    connection.setblocking(False)
    try:
        return connection.recv(1 << 20) == b""
    except BlockingIOError:
        return False
    except ConnectionError:
        return True


def test_a_second_request_that_never_ends(gateway: Open, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(serving, "HEADER_SECONDS", 0.5)
    gate = gateway()
    with socket.create_connection((gate.http.base_url.host, gate.http.base_url.port or 0)) as connection:
        connection.sendall(b"GET /nothing HTTP/1.1\r\nHost: a\r\n\r\n")
        assert connection.recv(12).endswith(b"404")
        connection.sendall(b"GET /v1/models HT")
        until(lambda: closed(connection))


def test_an_answer_that_nobody_reads(gateway: Open, llm: ScriptedLLM, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(serving, "UNREAD_SECONDS", 0.3)
    llm.large = 30 * MIB
    gate = gateway()
    body = b'{"model": "gpt-4o", "messages": []}'
    head = b"POST /v1/chat/completions HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer "
    head += gate.services.env["OPENAI_API_KEY"].encode() + b"\r\nContent-Length: %d\r\n\r\n" % len(body)
    with socket.create_connection((gate.http.base_url.host, gate.http.base_url.port or 0)) as connection:
        connection.sendall(head + body)
        until(lambda: gate.log)
        port = connection.getsockname()[1]
        until(lambda: not _established(port))


def _established(port: int) -> bool:
    """Whether the server still has its end of the connection from this port, in the state ESTABLISHED."""
    rows = [line.split() for line in Path("/proc/net/tcp").read_text().splitlines()[1:]]
    return any(int(row[2].rpartition(":")[2], 16) == port and row[3] == "01" for row in rows)


def test_thousands_of_connections_to_the_proxy(tmp_path: Path) -> None:
    server = proxy.Proxy(tmp_path / "proxy.sock", "allowlist", ["example.org"])
    before = threading.active_count()
    with contextlib.ExitStack() as held:
        connections = []
        for _ in range(proxy.CONNECTIONS + 100):
            connection = held.enter_context(socket.socket(socket.AF_UNIX))
            connection.connect(str(tmp_path / "proxy.sock"))
            connections.append(connection)
        until(lambda: sum(map(closed, connections)) >= 100)
        assert threading.active_count() - before <= proxy.CONNECTIONS
    server.close()
