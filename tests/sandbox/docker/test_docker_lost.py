"""Containers that their engine, their machine or somebody else ends: lost, which is not the agent's fault."""

from __future__ import annotations

import atexit
import contextlib
import dataclasses
import os
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import docker
import psutil
import pytest

from sandbox import backends
from sandbox.backend import RunSpec
from sandbox.definitions import BASE_IMAGE, Agent
from sandbox.docker import watch
from sandbox.docker.backend import DockerBackend
from sandbox.docker.engine import connect
from sandbox.docker.runs import find
from sandbox.errors import RunLost
from sandbox.host.slots import Claim, HostSlots
from tests.processes import descendants
from tests.sandbox.docker.conftest import Waiting, remains_of
from tests.waiting import until

pytestmark = pytest.mark.slow

WAITS = 'echo begun\nuntil [ -e "$SUBMISSION_DIR/go" ]; do sleep 0.1; done\n'


def container_of(spec: RunSpec, role: str = "agent") -> Any:
    container = find(connect(), spec.workdir, role)
    assert container is not None
    return container


def lost(waiting: Waiting, why: str) -> None:
    with pytest.raises(RunLost, match=why):
        waiting.result()


@pytest.mark.parametrize("command", ["restart", "kill", "stop"])
def test_a_container_that_somebody_ends_is_lost(
    docker_backend: DockerBackend, docker_spec: Callable[..., RunSpec], command: str
) -> None:
    spec = docker_spec("trap 'exit 0' TERM\n" + WAITS)  # an agent that ends well on SIGTERM
    waiting = Waiting(docker_backend, docker_backend.start(spec))
    waiting.until("begun")
    subprocess.run(["docker", command, container_of(spec).id], check=True, capture_output=True)
    lost(waiting, "its container was started again|somebody ended its container")
    assert remains_of(spec.workdir) == []
    assert docker_backend.find(spec) == "new"
    again = docker_backend.start(spec)
    assert again.attachment == "new"
    docker_backend.discard(again)


def test_an_agent_that_kills_itself_has_crashed(
    docker_backend: DockerBackend, docker_spec: Callable[..., RunSpec]
) -> None:
    for number in (signal.SIGKILL, signal.SIGTERM):
        spec = docker_spec(f"kill -{number} 0", run_id=f"with-{number}")
        assert docker_backend.wait(docker_backend.start(spec)).status == "crashed"


def test_a_forwarder_that_fails_comes_back(docker_backend: DockerBackend, docker_spec: Callable[..., RunSpec]) -> None:
    """In the same network. What the agent does then is the agent's."""
    spec = docker_spec(WAITS + "curl --silent --write-out '%{http_code}\\n' http://127.0.0.1:5000/health; exit 3")
    waiting = Waiting(docker_backend, docker_backend.start(spec))
    waiting.until("begun")
    forwarder = container_of(spec, "forwarder")
    for process in psutil.Process(forwarder.attrs["State"]["Pid"]).children(recursive=True):
        if process.name().startswith("python"):
            process.kill()
    until(lambda: forwarder.logs().count(b"ready") == 2)
    (spec.workdir / "home" / "submission" / "go").touch()
    assert waiting.result().status == "crashed"
    assert waiting.lines == ["begun", "503"]


@pytest.mark.parametrize("started_again", [False, True])
def test_a_run_whose_forwarder_was_ended_is_lost(
    started_again: bool,
    docker_backend: DockerBackend,
    docker_spec: Callable[..., RunSpec],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """If it was started again, it has another network, in which the agent is not."""
    monkeypatch.setattr(watch, "NETWORK_SECONDS", 0.1)
    spec = docker_spec(WAITS)
    waiting = Waiting(docker_backend, docker_backend.start(spec))
    waiting.until("begun")
    forwarder = container_of(spec, "forwarder")
    forwarder.restart(timeout=0) if started_again else forwarder.kill()
    lost(waiting, "somebody ended the run's forwarder")
    assert remains_of(spec.workdir) == []


def test_a_slot_stays_with_its_container(
    docker_backend: DockerBackend, docker_spec: Callable[..., RunSpec], tmp_path: Path
) -> None:
    spec = docker_spec(WAITS)
    host = HostSlots(tmp_path / "host", backends, ["GPU-a"])
    claim = Claim(spec.run_id, str(spec.workdir), "docker", seconds=60)
    with contextlib.suppress(KeyboardInterrupt), host.take(claim, 1) as allocation:
        handle = docker_backend.start(dataclasses.replace(spec, allocation=allocation))
        raise KeyboardInterrupt
    assert [holder.claim for holder in host.holders()] == [claim]
    docker_backend.discard(handle)
    assert host.holders() == []


class OwnEngine:
    """An engine of our own, which a test may end without disturbing others, with an image of a few programs."""

    def __init__(self, folder: Path, image: Path) -> None:
        self.folder, self.url = folder, f"unix://{folder}/sock"
        folder.mkdir()
        self.start()
        atexit.register(self.remove)
        self.client = docker.DockerClient(self.url, timeout=60)
        self.client.api.import_image_from_file(str(image), repository=BASE_IMAGE)

    def start(self) -> None:
        command = ["dockerd", "--bridge=none", "--iptables=false", "--ip-masq=false", f"--host={self.url}"]
        command += [f"--{name}={self.folder}/{name}" for name in ("data-root", "exec-root", "pidfile")]
        with (self.folder / "log").open("ab") as log:
            # In namespaces of its own: an engine removes the bridge of another one on the same network.
            self.process = psutil.Popen(["unshare", "--net", "--mount", *command], stdout=log, stderr=log)
        until(self.answers, may_yet=lambda: self.process.poll() is None, what="the engine's answer")

    def answers(self) -> bool:
        done = subprocess.run(["docker", "--host", self.url, "version"], capture_output=True, check=False)
        return done.returncode == 0

    def end(self) -> None:
        """As `systemctl stop docker` does, and a machine that is shut down."""
        self.process.terminate()
        self.process.wait(60)

    def remove(self) -> None:
        """End it, and remove its files."""
        atexit.unregister(self.remove)
        self.end()
        shutil.rmtree(self.folder.parent, ignore_errors=True)

    def kill(self) -> None:
        """As a machine that loses power: engine, shims and containers are gone at once."""
        found = self.process.children(recursive=True)
        for process in psutil.process_iter():
            with contextlib.suppress(psutil.Error):
                if str(self.folder / "exec-root") in " ".join(process.cmdline()):
                    found += [process, *descendants(process)]
        for each in [self.process, *found]:
            with contextlib.suppress(psutil.NoSuchProcess):
                each.kill()
        self.process.wait(60)
        for name in (
            "pidfile",
            "exec-root/containerd/containerd.pid",
        ):  # on a directory that is empty after the next boot
            (self.folder / name).unlink(missing_ok=True)


@pytest.fixture
def engine(small_image: Path) -> Iterator[OwnEngine]:
    if os.getuid() or not shutil.which("dockerd"):
        pytest.skip("needs root and dockerd")
    folder = Path(tempfile.mkdtemp(prefix="engine-"))  # the path of a socket is short
    engine = OwnEngine(folder / "e", small_image)
    yield engine
    engine.remove()


@pytest.mark.parametrize("how", ["end", "kill"])
def test_an_engine_that_is_restarted_loses_its_runs(
    engine: OwnEngine,
    make_spec: Callable[..., RunSpec],
    make_agent: Callable[..., Agent],
    how: str,
) -> None:
    agent = make_agent("trap 'exit 0' TERM\n" + WAITS)
    spec = make_spec("", agent=agent, cpus=1)
    with DockerBackend(client=engine.client) as backend:
        waiting = Waiting(backend, backend.start(spec))
        waiting.until("begun")
        getattr(engine, how)()
        engine.start()
        lost(waiting, "the container engine or the machine was restarted")
        again = backend.start(spec)
        assert again.attachment == "new"
        (spec.workdir / "home" / "submission" / "go").touch()
        assert backend.wait(again).status == "completed"
        backend.discard(again)
