from __future__ import annotations

import contextlib
import dataclasses
import os
import socket
import subprocess
import tarfile
import tempfile
import threading
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO, Any

import docker
import pytest

from sandbox.backend import Backend, RunHandle, RunResult, RunSpec
from sandbox.definitions import BASE_IMAGE, Agent
from sandbox.docker import runs
from sandbox.docker.backend import DockerBackend
from sandbox.docker.engine import connect
from sandbox.docker.network import remove
from sandbox.supervision import control
from tests import images
from tests.sandbox.conftest import Run
from tests.services import skip_without

ROOT = Path(__file__).parents[3]
ENGINE = os.environ.get("DOCKER_HOST", "unix:///var/run/docker.sock").removeprefix("unix://")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if Path(__file__).parent in item.path.parents:
            item.add_marker(pytest.mark.service("docker"))


@pytest.fixture(scope="session")
def base_image() -> str:
    """The base image, built if nobody has built it."""
    skip_without(images.without_base_image())
    return BASE_IMAGE


@pytest.fixture(scope="session")
def small_image(base_image: str, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Shell, coreutils and Python of the base image, which is loaded much faster than the whole."""
    whole = tmp_path_factory.mktemp("image")
    made = subprocess.run(["docker", "create", base_image, "true"], capture_output=True, check=True, text=True)
    try:
        with subprocess.Popen(["docker", "export", made.stdout.strip()], stdout=subprocess.PIPE) as export:
            _keep_what_is_needed(export.stdout, whole / "small.tar")
    finally:
        subprocess.run(["docker", "rm", made.stdout.strip()], capture_output=True, check=True)
    return whole / "small.tar"


def _keep_what_is_needed(content: IO[bytes] | None, target: Path) -> None:
    with tarfile.open(fileobj=content, mode="r|") as source, tarfile.open(target, "w") as small:
        for member in source:
            if _is_needed(member.name):
                small.addfile(member, source.extractfile(member) if member.isreg() else None)


def _is_needed(name: str) -> bool:
    if name.startswith(("usr/lib/python3/", "usr/lib/python3.11/test", "usr/lib/x86_64-linux-gnu/perl")):
        return False
    wanted = ("usr/lib/python3", "usr/bin/", "bin", "lib", "usr/lib/x86_64-linux-gnu/l", "usr/lib64", "home", "tmp")
    return name.startswith((*wanted, "var/tmp", "etc/passwd", "dev", "proc", "sys", "usr/lib/ssl"))


@pytest.fixture
def unique() -> str:
    return uuid.uuid4().hex[:8]


@pytest.fixture
def docker_spec(
    make_spec: Callable[..., RunSpec], make_agent: Callable[..., Agent], base_image: str, unique: str
) -> Iterator[Callable[..., RunSpec]]:
    """As `make_spec`, with an agent and a run id of its own; whatever is left of the runs goes at the end."""
    made: list[RunSpec] = []

    def make(script: str, *, run_id: str = "run", **rest: Any) -> RunSpec:
        agent = make_agent(script, name=run_id)
        spec = make_spec(script, run_id=run_id, agent=agent, **{"cpus": 1, **rest})
        made.append(dataclasses.replace(spec, run_id=f"{run_id}-{unique}"))
        return made[-1]

    yield make
    for spec in made:
        remove(connect(), spec.workdir)


@pytest.fixture
def docker_backend() -> Iterator[DockerBackend]:
    with DockerBackend() as backend:
        yield backend


@pytest.fixture
def run(docker_backend: DockerBackend, docker_spec: Callable[..., RunSpec]) -> Callable[..., Run]:
    """Run an agent with this start.sh to its end and make sure that no container is left."""

    def run(script: str, **limits: Any) -> Run:
        lines: list[str] = []
        handle = docker_backend.start(docker_spec(script, **limits))
        result = docker_backend.wait(handle, lines.append)
        assert remains_of(handle.workdir) == []
        return Run(handle, result, lines)

    return run


def remains_of(workdir: Path) -> list[str]:
    """Names of containers of a run."""
    label: Any = {"label": f"{runs.WORKDIR}={workdir}"}
    return [str(each.name) for each in connect().containers.list(all=True, filters=label)]


class Waiting:
    """A wait in another thread."""

    def __init__(self, backend: Backend, handle: RunHandle) -> None:
        self.lines: list[str] = []
        self.seen = threading.Condition()
        self.results: list[RunResult | Exception] = []
        self.thread = threading.Thread(target=self._wait, args=(backend, handle))
        self.thread.start()

    def _wait(self, backend: Backend, handle: RunHandle) -> None:
        try:
            self.results.append(backend.wait(handle, self._line))
        except Exception as error:
            self.results.append(error)

    def _line(self, line: str) -> None:
        with self.seen:
            self.lines.append(line)
            self.seen.notify_all()

    def until(self, line: str) -> None:
        with self.seen:
            assert self.seen.wait_for(lambda: line in self.lines, 60), f"no {line!r} in {self.lines}, {self.results}"

    def result(self) -> RunResult:
        self.thread.join(90)
        [result] = self.results
        if isinstance(result, Exception):
            raise result
        return result


@pytest.fixture
def layout() -> Callable[[RunHandle], control.Layout]:
    return lambda handle: control.Layout(handle.workdir)


class Relay:
    """The engine behind a socket of our own, which can be broken off and come back."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._opened: list[socket.socket] = []
        self.open()

    def client(self) -> docker.DockerClient:
        return docker.DockerClient(base_url=f"unix://{self.path}", timeout=10)

    def open(self) -> None:
        server = socket.socket(socket.AF_UNIX)
        server.bind(str(self.path))
        server.listen()
        self._opened = [server]
        threading.Thread(target=self._serve, args=(server, self._opened), daemon=True).start()

    def close(self) -> None:
        self.path.unlink(missing_ok=True)
        for each in self._opened:
            with contextlib.suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)
            each.close()

    def _serve(self, server: socket.socket, opened: list[socket.socket]) -> None:
        with contextlib.suppress(OSError):
            while True:
                client, _ = server.accept()
                engine = socket.socket(socket.AF_UNIX)
                engine.connect(ENGINE)
                opened.extend((client, engine))
                for pair in ((client, engine), (engine, client)):
                    threading.Thread(target=_pump, args=pair, daemon=True).start()


def _pump(source: socket.socket, target: socket.socket) -> None:
    with contextlib.suppress(OSError):
        while chunk := source.recv(65536):
            target.sendall(chunk)
        target.shutdown(socket.SHUT_WR)


@pytest.fixture
def relay() -> Iterator[Relay]:
    folder = Path(tempfile.mkdtemp(prefix="relay-"))  # the path of a socket is short
    relay = Relay(folder / "e.sock")
    yield relay
    relay.close()
    folder.rmdir()


@pytest.fixture(autouse=True)
def _not_the_operators_engine(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in os.environ if name.startswith("DOCKER_") and name != "DOCKER_HOST"]:
        monkeypatch.delenv(name)
