"""Slots and GPUs of a host: real processes that want the same ones, are killed, and are stopped."""

from __future__ import annotations

import contextlib
import errno
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from sandbox.backend import RunSpec
from sandbox.errors import BackendError
from sandbox.host.slots import Claim, HostSlots, granted
from sandbox.process.backend import ProcessBackend
from tests.sandbox.process.test_process_survival import supervisor_of

PROCESS = """
import sys
from pathlib import Path
from sandbox.host import slots
from tests.sandbox.host.test_slots import Supervised

folder, name, gpus, limit, absent = sys.argv[1:]
slots.ABSENT_SECONDS = float(absent)
claim = slots.Claim(name, f"/agents/{name}", "process", gpus=int(gpus))
host = slots.HostSlots(Path(folder), Supervised())
with host.take(claim, int(limit), lambda what: print("waits", what, flush=True)) as allocation:
    print("has", *allocation.gpus, flush=True)
    sys.stdin.readline()
print("freed", flush=True)
"""
ORCHESTRATOR = """
import sys
from dataclasses import replace
from pathlib import Path
from sandbox.agent_registry import load_agent
from sandbox.backend import RunSpec
from sandbox.host.slots import Claim, HostSlots
from sandbox.limits import Limits
from sandbox.process.backend import ProcessBackend
from tests.sandbox.host.test_slots import Supervised

folder, agent, data, workdir = sys.argv[1:]
limits = Limits(time_limit_seconds=60)
spec = RunSpec("run", "competition", 3, load_agent(agent, [agent]), Path(data), Path(workdir), limits)
with HostSlots(Path(folder), Supervised(), ["GPU-a"]).take(Claim("run", workdir, "process", gpus=1), 1) as allocation:
    backend = ProcessBackend()
    backend.wait(backend.start(replace(spec, allocation=allocation)), lambda line: print(line, flush=True))
"""


class Supervised:
    """A backend whose runs hold the locks of their slots."""

    def is_running(self, _name: str, _workdir: Path) -> bool:
        return False

    def gpus_in_use(self) -> set[str]:
        return set()


class Wants:
    """Another process that takes a slot when it can, and frees it when it is told to."""

    process: subprocess.Popen[str]

    def __init__(self, folder: Path, name: str, gpus: int = 0, limit: int = 2, absent: float = 60.0) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-c", PROCESS, folder, name, str(gpus), str(limit), str(absent)],
            cwd=Path(__file__).parents[3],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def says(self) -> str:
        assert self.process.stdout is not None
        return self.process.stdout.readline().strip()

    def says_at_last(self, beginning: str) -> str:
        """What it says that begins so: before, it may wait for others than it did, as slots change hands."""
        while not (said := self.says()).startswith(beginning):
            assert said.startswith("waits"), said
        return said

    def free(self) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write("\n")
        self.process.stdin.flush()

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "host"


@pytest.fixture
def wants(folder: Path) -> Iterator[Callable[..., Wants]]:
    started: list[Wants] = []

    def start(name: str, **more: Any) -> Wants:
        started.append(Wants(folder, name, **more))
        return started[-1]

    yield start
    for each in started:
        each.process.send_signal(signal.SIGCONT)
        each.kill()


@pytest.fixture
def one_gpu(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine on which nvidia-smi shows one GPU."""
    command = tmp_path / "bin" / "nvidia-smi"
    command.parent.mkdir()
    command.write_text("#!/bin/sh\necho GPU-a\n")
    command.chmod(0o755)
    monkeypatch.setenv("PATH", f"{command.parent}:{os.environ['PATH']}")


def test_who_gets_a_slot() -> None:
    assert granted([0, 0, 0], slots=2, gpus=0) == [True, True, False]
    assert granted([2, 1], slots=2, gpus=1) == [False, False]  # the first one would never get two otherwise
    assert granted([2, 0, 0], slots=1, gpus=1) == [False, True, False]
    assert granted([1, 1], slots=0, gpus=2) == [False, False]
    assert granted([0], slots=-1, gpus=0) == [False]


def test_processes_share_the_slots_in_the_order_of_their_coming(folder: Path, wants: Callable[..., Wants]) -> None:
    first, second = wants("first"), wants("second")
    assert (first.says(), second.says()) == ("has", "has")
    third = wants("third")
    assert third.says() in (
        f"waits for a slot (2 of 2 taken by {names})" for names in ("first, second", "second, first")
    )
    fourth = wants("fourth")
    assert fourth.says().endswith("), 1 before it")
    host = HostSlots(folder, Supervised())
    assert {each.claim.run_id for each in host.holders()} == {"first", "second"}
    assert [claim.run_id for claim in host.waiting()] == ["third", "fourth"]
    second.free()
    assert third.says_at_last("has") == "has"
    fourth.says_at_last("waits for a slot (2 of 2 taken by")
    first.kill()
    assert fourth.says_at_last("has") == "has"
    assert host.waiting() == []


def test_who_has_a_slot_no_longer_waits_for_it(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Otherwise the next one, which looks when the lock is free, would count it twice, and wait for its turn."""
    waiting: list[list[Path]] = []
    grant = HostSlots._grant

    def granting(host: HostSlots, *what: Any) -> Any:
        waiting.append(list((folder / "queue").iterdir()))
        return grant(host, *what)

    monkeypatch.setattr(HostSlots, "_grant", granting)
    with HostSlots(folder, Supervised()).take(Claim("first", "/agents/first", "process"), 2):
        assert waiting == [[]]


def test_a_slot_whose_holder_cannot_be_written_stays_free(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    host, claim = HostSlots(folder, Supervised()), Claim("first", "/agents/first", "process")

    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, "no space left")

    with monkeypatch.context() as patch:
        patch.setattr(HostSlots, "_write", full)
        with pytest.raises(OSError, match="no space"):
            host.take(claim, 1).__enter__()
    assert not host.holders()
    with host.take(claim, 1):
        assert [each.claim.run_id for each in host.holders()] == ["first"]


def test_a_flow_run_with_fewer_slots_counts_those_of_others(wants: Callable[..., Wants]) -> None:
    assert wants("a", limit=3).says() == "has"
    careful = wants("b", limit=1)
    assert careful.says() == "waits for a slot (1 of 1 taken by a)"
    assert wants("c", limit=3).says() == "has"


@pytest.mark.usefixtures("one_gpu")
def test_two_processes_never_share_a_gpu(wants: Callable[..., Wants]) -> None:
    both = [wants(name, gpus=1) for name in ("a", "b")]
    said = [each.says() for each in both]
    has = said.index("has GPU-a")
    assert said[1 - has] == f"waits for 1 GPUs (1 of 1 taken by {'ab'[has]})"
    assert wants("none").says() == "has"  # runs without GPUs do not wait for those that want some
    both[has].kill()
    assert both[1 - has].says_at_last("has") == "has GPU-a"


def test_more_gpus_than_the_host_has(folder: Path) -> None:
    host = HostSlots(folder, Supervised(), ["GPU-a"])
    with pytest.raises(BackendError, match="asks for 2 GPUs, and this machine has 1"), host.take(claim("x", 2), 1):
        pass
    assert host.waiting() == []


def test_a_stopped_process_does_not_hold_back_the_others(wants: Callable[..., Wants]) -> None:
    holder = wants("holder", limit=1)
    assert holder.says() == "has"
    stopped = wants("stopped", limit=1)
    assert stopped.says().startswith("waits")
    stopped.process.send_signal(signal.SIGSTOP)
    waiting = wants("waiting", limit=1, absent=0.5)
    assert waiting.says().startswith("waits")
    holder.free()
    assert waiting.says_at_last("has") == "has"
    stopped.process.send_signal(signal.SIGCONT)
    stopped.says_at_last("waits for a slot (1 of 1 taken by waiting)")
    waiting.free()
    assert stopped.says_at_last("has") == "has"


def test_an_agent_keeps_its_slot_and_gpu_when_its_orchestrator_is_killed(
    folder: Path, make_spec: Callable[..., RunSpec], wants: Callable[..., Wants], backend: ProcessBackend
) -> None:
    spec = make_spec('echo "$CUDA_VISIBLE_DEVICES $NVIDIA_VISIBLE_DEVICES"\nwhile [ ! -e go ]; do sleep 0.02; done\n')
    orchestrator = subprocess.Popen(
        [sys.executable, "-c", ORCHESTRATOR, folder, spec.agent.folder, spec.data, spec.workdir],
        cwd=Path(__file__).parents[3],
        stdout=subprocess.PIPE,
        text=True,
    )
    assert orchestrator.stdout is not None
    assert orchestrator.stdout.readline() == "GPU-a GPU-a\n"
    orchestrator.kill()
    orchestrator.wait()
    waiting = wants("next", limit=1)
    assert waiting.says() == "waits for a slot (1 of 1 taken by run)"
    host = HostSlots(folder, Supervised(), ["GPU-a"])
    [holder] = host.holders()
    assert not holder.waited_for
    assert str(holder).startswith("run (process, since 20")
    with host.take(claim("run", 1, spec.workdir), 1, running=True) as allocation:  # the next orchestrator does not wait
        assert allocation.gpus == ("GPU-a",)
        handle = backend.start(spec)
        assert handle.attachment == "running"
        (spec.workdir / "home" / "go").touch()
        backend.wait(handle)
    assert waiting.says_at_last("has") == "has"


def test_an_agent_whose_supervisor_is_killed_too_has_no_slot(
    folder: Path, make_spec: Callable[..., RunSpec], wants: Callable[..., Wants], backend: ProcessBackend
) -> None:
    spec = make_spec("echo begun; sleep 1000")
    host = HostSlots(folder, Supervised())
    with contextlib.suppress(KeyboardInterrupt), host.take(claim("run", 0, spec.workdir), 1) as allocation:
        backend.start(replace(spec, allocation=allocation))
        raise KeyboardInterrupt
    waiting = wants("next", limit=1)
    assert waiting.says().startswith("waits for a slot")
    os.kill(supervisor_of(spec.workdir), signal.SIGKILL)
    assert waiting.says_at_last("has") == "has"


class Containers:
    """An engine with these containers."""

    def __init__(self, *workdirs: str, gpus: set[str] | None = None) -> None:
        self.workdirs, self.assigned = set(workdirs), gpus or set()

    def is_running(self, _name: str, workdir: Path) -> bool:
        return str(workdir) in self.workdirs

    def gpus_in_use(self) -> set[str]:
        return self.assigned


def test_a_container_keeps_the_slot_of_its_orchestrator_that_is_gone(folder: Path) -> None:
    engine = Containers("/agents/x")
    host = HostSlots(folder, engine, ["GPU-a", "GPU-b"])
    with contextlib.suppress(KeyboardInterrupt), host.take(claim("x", 1, backend="docker", seconds=60), 1):
        raise KeyboardInterrupt
    assert [each.devices for each in host.holders()] == [("GPU-a",)]
    with host.take(claim("x", 1, backend="docker"), 1, running=True) as again:
        assert again.gpus == ("GPU-a",)
        assert again.descriptor is not None
    assert host.holders() == []  # it has ended in the block
    with contextlib.suppress(KeyboardInterrupt), host.take(claim("x", 1, backend="docker", seconds=60), 1):
        raise KeyboardInterrupt
    engine.workdirs.clear()
    assert host.holders() == []


def test_gpus_of_containers_of_other_users_are_not_free(folder: Path) -> None:
    host = HostSlots(folder, Containers(gpus={"GPU-a"}), ["GPU-a", "GPU-b"])
    with host.take(claim("x", 1), 2) as allocation:
        assert allocation.gpus == ("GPU-b",)


def test_a_run_in_progress_that_has_no_slot_does_not_wait(folder: Path) -> None:
    host = HostSlots(folder, Supervised())
    with host.take(claim("x"), 1), host.take(claim("y"), 1, running=True) as allocation:
        assert allocation.descriptor is not None
        assert len(host.holders()) == 2


def test_slots_of_another_version_count_as_taken(folder: Path) -> None:
    host = HostSlots(folder, Supervised())
    with host.take(claim("x"), 1):
        (folder / "slots" / "0.json").write_text('{"other": 1}')
        assert [each.claim.run_id for each in host.holders()] == ["an unknown run"]


def claim(name: str, gpus: int = 0, workdir: Path | None = None, backend: str = "process", seconds: float = 0) -> Claim:
    return Claim(name, str(workdir or f"/agents/{name}"), backend, gpus, seconds)


def test_the_host_folder_does_not_depend_on_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    from sandbox.host.folder import host_folder

    here = host_folder(os.environ["MLEBENCH_HOST_NAME"])
    for name in ("HOME", "TMPDIR", "XDG_RUNTIME_DIR", "MLEBENCH_SCRATCH"):
        monkeypatch.setenv(name, "/elsewhere")
    assert host_folder(os.environ["MLEBENCH_HOST_NAME"]) == here
    assert here.parent.parent.stat().st_mode & 0o777 == 0o700


@pytest.mark.parametrize("how", ["another user", "open to others", "link", "file"])
def test_a_directory_that_somebody_else_made_first_is_not_used(tmp_path: Path, how: str) -> None:
    """Everybody can make a directory of the usual name in /tmp and /run/lock, and nobody else can remove it there."""
    from sandbox.host.folder import private

    taken = tmp_path / f"mlebench-{os.getuid()}"
    if how == "another user":
        if os.getuid():
            pytest.skip("only root can give a directory away")
        taken.mkdir(mode=0o700)
        os.chown(taken, 65533, 65533)
    elif how == "open to others":
        taken.mkdir()
        taken.chmod(0o755)
    elif how == "link":
        (tmp_path / "elsewhere").mkdir(mode=0o700)
        taken.symlink_to(tmp_path / "elsewhere")
    else:
        taken.touch()
    (tmp_path / f"{taken.name}-0").symlink_to(tmp_path)
    ours = private(tmp_path)
    assert ours != taken
    assert (ours.stat().st_mode & 0o777, ours.stat().st_uid) == (0o700, os.getuid())
    assert len(str(ours.relative_to(tmp_path))) < 40
    assert private(tmp_path) == ours
    taken.rename(tmp_path / "gone")  # processes that come later find what those before them use
    assert private(tmp_path) == ours


def test_processes_that_start_at_once_agree_on_the_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Although its usual name is taken. Another process makes it in the moment before this one does."""
    from sandbox.host import folder

    (tmp_path / f"mlebench-{os.getuid()}").touch()
    ours = folder._ours
    others: list[Path] = []

    def look(usual: Path) -> Path | None:
        found = ours(usual)
        if not others:
            others.append(usual)
            others.append(folder.private(tmp_path))
        return found

    monkeypatch.setattr(folder, "_ours", look)
    assert folder.private(tmp_path) == others[1] == folder.private(tmp_path)
    assert len(list(tmp_path.iterdir())) == 2


def test_a_directory_is_found_although_others_took_all_names_that_can_be_guessed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from sandbox.host import folder

    monkeypatch.setattr(folder, "NAMES", 3)
    for end in ("", "-1", "-2"):
        (tmp_path / f"mlebench-{os.getuid()}{end}").touch()
    assert folder.private(tmp_path) == folder.private(tmp_path)
