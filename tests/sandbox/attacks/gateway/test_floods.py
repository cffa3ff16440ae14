"""Floods from inside a container, through every way that leads out of it, while another run is at work beside it."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from pydantic import SecretStr

from common.providers import Provider
from sandbox.backend import RunSpec
from sandbox.docker.backend import DockerBackend
from sandbox.gateway.policy import Budget, GatewayPolicy
from sandbox.limits import MIB
from sandbox.services.run_services import RunServices
from sandbox.services.separate import ProcessLimits
from sandbox.validation.checker import Check
from tests.sandbox.attacks.conftest import Hostile, python
from tests.sandbox.attacks.gateway.test_resources import MEMORY, Checked, host, peak
from tests.sandbox.docker.conftest import Waiting, remains_of
from tests.sandbox.gateway.llm import KEY, ScriptedLLM

FLOOD = """
    import contextlib, os, socket, threading, time
    key, kept = os.environ["OPENAI_API_KEY"], []

    def opened(port=8000):
        return socket.create_connection(("services", port), 20)

    def head(length, path="/v1/chat/completions", method="POST", more=""):
        lines = f"{method} {path} HTTP/1.1\\r\\nHost: services\\r\\nAuthorization: Bearer {key}\\r\\n{more}"
        return f"{lines}Content-Length: {length}\\r\\n\\r\\n".encode()

    def announced_and_dropped():
        with opened() as connection:
            connection.sendall(head(30 << 20) + b"[" * (1 << 20))

    def gigabytes_when_parsed():
        body = b'{"model": "gpt-4o", "messages": [' + b"[]," * (4 << 20) + b"[]]}"
        with opened() as connection:
            connection.sendall(head(len(body)) + body)
            connection.recv(1)

    def streams_unread():
        body = b'{"model": "gpt-4o", "stream": true, "messages": [{"role": "user", "content": "a"}]}'
        kept.append(opened())
        kept[-1].sendall(head(len(body)) + body)

    def halves():
        for port in (5000, 8000) * 20:
            kept.append(opened(port))
            kept[-1].sendall(b"POST / HT")
        del kept[:-400]

    def uploads():
        start = b'--b\\r\\nContent-Disposition: form-data; name="file"; filename="a"\\r\\n\\r\\n'
        with opened(5000) as connection:
            connection.sendall(
                head(1 << 30, "/validate", more="Content-Type: multipart/form-data; boundary=b\\r\\n") + start
            )
            for _ in range(20):
                connection.sendall(bytes(1 << 20))

    def free():
        with opened() as connection:
            for _ in range(50):
                connection.sendall(head(0, "/v1/models", "GET"))
                connection.recv(1 << 16)

    def for_ever(attempt, begun):
        while True:
            with contextlib.suppress(OSError):
                attempt()
            begun.release()
            time.sleep(0.01)

    attempts = [announced_and_dropped, gigabytes_when_parsed, streams_unread, halves, uploads, free]
    begun = [threading.Semaphore(0) for _ in attempts]
    for attempt, once in zip(attempts, begun):
        for _ in range(3):
            threading.Thread(target=for_ever, args=(attempt, once), daemon=True).start()
    for once in begun:
        once.acquire()
    print("flooding", flush=True)
    time.sleep(1000)
"""
AT_WORK = """
for number in 1 2 3 4 5 6 7 8; do
    curl --silent --output /dev/null --write-out '%{http_code}\\n' -H "Authorization: Bearer $OPENAI_API_KEY" \\
        --json '{"model": "gpt-4o", "messages": [{"role": "user", "content": "Predict."}]}' \\
        "$OPENAI_BASE_URL/chat/completions"
done
printf "id,label\\n1,1\\n" >"$SUBMISSION_DIR/submission.csv"
sh "$VALIDATE_SCRIPT" "$SUBMISSION_DIR/submission.csv"
"""
Serve = Callable[[RunSpec], tuple[RunSpec, RunServices]]


@pytest.fixture
def serve(contained: Hostile, llm: ScriptedLLM) -> Iterator[Serve]:
    """Open the services of a run as the orchestrator does; returns the run with its way to them."""
    with contextlib.ExitStack() as opened:

        def serve(spec: RunSpec) -> tuple[RunSpec, RunServices]:
            provider = Provider(base_url=f"{llm.url}/v1", api_key=SecretStr(KEY), price_list="openai")
            services = opened.enter_context(
                RunServices(
                    spec.workdir,
                    contained.backend.service_addresses(spec),
                    checks={"validation": Check(Checked())},
                    gateway=GatewayPolicy(providers={"openai": provider}, budget=Budget(dollars=100.0)),
                    process=ProcessLimits(memory_bytes=MEMORY),
                )
            )
            return replace(spec, env=services.env, validation_url=services.validation_url), services

        yield serve


def test_floods_that_should_reach_another_run(contained: Hostile, serve: Serve) -> None:
    assert isinstance(contained.backend, DockerBackend)
    hostile, flooded = serve(contained.spec(python(FLOOD), run_id="hostile", time_limit_seconds=300, processes=100))
    honest, services = serve(contained.spec(AT_WORK, run_id="honest", time_limit_seconds=300))
    known, before = host(services).pid, peak(os.getpid())
    descriptors = len(list(Path("/proc/self/fd").iterdir()))
    handle = contained.backend.start(hostile)
    flooding = Waiting(contained.backend, handle)
    flooding.until("flooding")
    done = contained.finish(honest)
    assert done.result.status == "completed"
    assert done.lines == ["200"] * 8 + ['{"result":"Submission is valid."}']
    assert flooding.results == []  # it has not ended meanwhile
    assert host(services).pid == known
    assert peak(known) < 200 * MIB
    assert peak(os.getpid()) - before < 200 * MIB
    assert len(list(Path("/proc/self/fd").iterdir())) < descriptors + 50
    contained.backend.stop(handle)
    assert flooding.result().status == "cancelled"
    assert remains_of(hostile.workdir) == []
    flooded.close()
