from __future__ import annotations

import dataclasses
import threading
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import psutil
import pytest
import yaml

from sandbox.agent_registry import load_agent
from sandbox.backend import RunHandle, RunResult, RunSpec
from sandbox.definitions import Agent
from sandbox.limits import GIB, MIB, Limits
from sandbox.process.backend import ProcessBackend
from sandbox.process.processes import RUN_MARKER
from sandbox.rootless.backend import RootlessBackend
from sandbox.supervision import control
from tests import roots

LIMITS = Limits(
    time_limit_seconds=60, grace_seconds=0.5, memory_bytes=GIB, disk_bytes=64 * MIB, processes=100, log_bytes=MIB
)


@pytest.fixture
def prepared(tmp_path: Path) -> Path:
    """A prepared dataset: public/ for the agent, private/ not."""
    public, private = tmp_path / "prepared" / "public", tmp_path / "prepared" / "private"
    (public / "images").mkdir(parents=True)
    private.mkdir()
    (public / "description.md").write_text("Predict the label.")
    (public / "sample_submission.csv").write_text("id,label\n1,0\n2,0\n")
    (public / "images" / "1.png").write_bytes(b"pixels")
    (private / "test.csv").write_text("id,label\n1,7\n2,8\n")
    return tmp_path / "prepared"


@pytest.fixture
def make_agent(tmp_path: Path) -> Callable[..., Agent]:
    """Write an agent's folder with this start.sh and load it."""

    def make(script: str, *, name: str = "made", **fields: Any) -> Agent:
        folder = tmp_path / "agents" / name
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "start.sh").write_text(script)
        (folder / "agent.yaml").write_text(yaml.safe_dump({"description": "Made here.", "trusted": True, **fields}))
        return load_agent(folder, [folder])

    return make


@pytest.fixture
def make_spec(tmp_path: Path, prepared: Path, make_agent: Callable[..., Agent]) -> Callable[..., RunSpec]:
    """The specification of a run of an agent with this start.sh; keyword arguments change its limits."""

    def make(script: str, *, run_id: str = "run", agent: Agent | None = None, **limits: Any) -> RunSpec:
        return RunSpec(
            run_id=run_id,
            competition_id="competition",
            seed=3,
            agent=agent or make_agent(script),
            data=prepared / "public",
            workdir=tmp_path / run_id,
            limits=dataclasses.replace(LIMITS, **limits),
        )

    return make


@pytest.fixture
def backend_name() -> str:
    """Overridden by folders whose tests hold for several backends."""
    return "process"


@pytest.fixture
def make_backend(backend_name: str) -> Callable[[], ProcessBackend]:
    if backend_name == "process":
        return ProcessBackend
    return partial(RootlessBackend, scratch=roots.scratch())


@pytest.fixture
def backend(make_backend: Callable[[], ProcessBackend]) -> Iterator[ProcessBackend]:
    with make_backend() as backend:
        yield backend


@dataclasses.dataclass
class Run:
    """A run that is over."""

    handle: RunHandle
    result: RunResult
    lines: list[str]

    @property
    def log(self) -> str:
        return (self.result.logs / "agent.log").read_text(errors="replace")

    @property
    def home(self) -> Path:
        return control.Layout(self.handle.workdir).home


@pytest.fixture
def run(backend: ProcessBackend, make_spec: Callable[..., RunSpec]) -> Callable[..., Run]:
    """Run an agent with this start.sh to its end and make sure that no process of it is left."""

    def run(script: str, **limits: Any) -> Run:
        lines: list[str] = []
        handle = backend.start(make_spec(script, **limits))
        result = backend.wait(handle, lines.append)
        assert processes_of(handle.workdir) == []
        return Run(handle, result, lines)

    return run


def processes_of(workdir: Path) -> list[psutil.Process]:
    """Processes of the run that live, found by their environment."""
    task = control.read(control.Layout(workdir).task, control.LaunchSpec)
    assert task is not None
    found = []
    for process in psutil.process_iter():
        try:
            if process.environ().get(RUN_MARKER) == task.marker and process.status() != psutil.STATUS_ZOMBIE:
                found.append(process)
        except psutil.Error:
            continue
    return found


@pytest.fixture
def living() -> Callable[[Path], list[psutil.Process]]:
    return processes_of


@pytest.fixture
def watch(backend: ProcessBackend) -> Callable[[RunHandle, str], tuple[threading.Thread, list[RunResult | Exception]]]:
    """Wait for a run in another thread, and here until it prints a certain line."""

    def watch(handle: RunHandle, line: str) -> tuple[threading.Thread, list[RunResult | Exception]]:
        seen = threading.Event()
        results: list[RunResult | Exception] = []

        def wait() -> None:
            try:
                results.append(backend.wait(handle, lambda text: seen.set() if text == line else None))
            except Exception as error:
                results.append(error)

        thread = threading.Thread(target=wait)
        thread.start()
        assert seen.wait(120), "the agent did not get that far"
        return thread, results

    return watch
