"""Runs of every backend that isolates."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from sandbox.backend import RunSpec
from sandbox.definitions import Agent
from sandbox.docker.backend import DockerBackend
from sandbox.rootless.backend import RootlessBackend
from tests import roots, services
from tests.sandbox.conftest import Run, processes_of
from tests.sandbox.docker.conftest import base_image, docker_spec, remains_of, unique

__all__ = ["base_image", "docker_spec", "unique"]

Isolating = DockerBackend | RootlessBackend


@pytest.fixture(params=services.ISOLATING)
def backend_name(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def isolating(backend_name: str) -> Iterator[Callable[..., Isolating]]:
    """Make a backend; keyword arguments are those that both have."""
    made: list[Isolating] = []

    def make(**options: Any) -> Isolating:
        if backend_name == "docker":
            made.append(DockerBackend(**options))
        else:
            made.append(RootlessBackend(scratch=roots.scratch(), **options))
        return made[-1]

    yield make
    for backend in made:
        backend.close()


@pytest.fixture
def isolated_spec(
    request: pytest.FixtureRequest,
    backend_name: str,
    make_spec: Callable[..., RunSpec],
    make_agent: Callable[..., Agent],
) -> Callable[..., RunSpec]:
    """As `make_spec`, with an agent of its own."""
    if backend_name == "docker":
        make: Callable[..., RunSpec] = request.getfixturevalue("docker_spec")
        return make

    def make_one(script: str, *, run_id: str = "run", **limits: Any) -> RunSpec:
        return make_spec(script, run_id=run_id, agent=make_agent(script, name=run_id), **{"cpus": 1, **limits})

    return make_one


@pytest.fixture
def run(
    backend_name: str, isolating: Callable[..., Isolating], isolated_spec: Callable[..., RunSpec]
) -> Callable[..., Run]:
    """Run an agent with this start.sh to its end and make sure that nothing of it is left."""
    backend = isolating()

    def run(script: str, **limits: Any) -> Run:
        lines: list[str] = []
        handle = backend.start(isolated_spec(script, **limits))
        result = backend.wait(handle, lines.append)
        assert (remains_of if backend_name == "docker" else processes_of)(handle.workdir) == []
        return Run(handle, result, lines)

    return run
