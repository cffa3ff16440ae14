"""A hostile agent on both backends. Each attack is one function; docs/security.md lists them with their verdicts."""

from __future__ import annotations

import dataclasses
import textwrap
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from sandbox.backend import RunSpec
from sandbox.definitions import Agent
from sandbox.docker.backend import DockerBackend
from sandbox.process.backend import ProcessBackend
from sandbox.supervision import control
from tests.sandbox.conftest import Run
from tests.sandbox.docker.conftest import (  # noqa: F401
    _not_the_operators_engine,
    base_image,
    docker_backend,
    docker_spec,
    remains_of,
    unique,
)

DOCKER = pytest.param("docker", marks=pytest.mark.service("docker"))
HANDS_IN = 'printf "id,label\\n1,1\\n" >"$SUBMISSION_DIR/submission.csv"\n'


def python(code: str, **values: object) -> str:
    """A start.sh that runs a Python program, in which `@name@` stands for a value."""
    code = textwrap.dedent(code)
    for name, value in values.items():
        code = code.replace(f"@{name}@", repr(value))
    return f"exec \"$MLEBENCH_PYTHON\" - <<'PYTHON'\n{code}\nPYTHON\n"


@dataclasses.dataclass
class Hostile:
    """A backend that runs hostile agents."""

    backend: DockerBackend | ProcessBackend
    make_spec: Callable[..., RunSpec]

    @property
    def contained(self) -> bool:
        return isinstance(self.backend, DockerBackend)

    def spec(self, script: str, *, change: dict[str, Any] | None = None, **limits: Any) -> RunSpec:
        return dataclasses.replace(self.make_spec(script, **limits), **(change or {}))

    def run(self, script: str, **rest: Any) -> Run:
        """Run an agent with this start.sh to its end; nothing of it may be left on the engine."""
        return self.finish(self.spec(script, **rest))

    def finish(self, spec: RunSpec) -> Run:
        lines: list[str] = []
        handle = self.backend.start(spec)
        result = self.backend.wait(handle, lines.append)
        if self.contained:
            assert remains_of(handle.workdir) == []
        return Run(handle, result, lines)


@pytest.fixture(params=["process", DOCKER])
def hostile(request: pytest.FixtureRequest) -> Iterator[Hostile]:
    """Hostile agents on each backend."""
    if request.param == "docker":
        make = request.getfixturevalue("docker_spec")
        with DockerBackend() as backend:
            yield Hostile(backend, make)
    else:
        with ProcessBackend() as backend:
            yield Hostile(backend, request.getfixturevalue("make_spec"))


@pytest.fixture
def contained(docker_spec: Callable[..., RunSpec]) -> Iterator[Hostile]:  # noqa: F811
    """Hostile agents in containers, for attacks against which the process backend does not protect."""
    with DockerBackend() as backend:
        yield Hostile(backend, docker_spec)


@pytest.fixture
def make_folder(tmp_path: Path, make_agent: Callable[..., Agent]) -> Callable[..., Agent]:
    """An agent whose folder somebody else has written; `prepare` adds to the folder."""

    def make(prepare: Callable[[Path], None], script: str = "true", **fields: Any) -> Agent:
        folder = tmp_path / "agents" / "foreign"
        folder.mkdir(parents=True)
        prepare(folder)
        return make_agent(script, name="foreign", **fields)

    return make


def layout_of(run: Run) -> control.Layout:
    return control.Layout(run.handle.workdir)
