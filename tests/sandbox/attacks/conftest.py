"""A hostile agent on both backends. Each attack is one function; docs/security.md lists them with their verdicts."""

from __future__ import annotations

import dataclasses
import os
import shutil
import subprocess
import sys
import tempfile
import textwrap
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from sandbox.backend import RunSpec
from sandbox.definitions import Agent
from sandbox.docker.backend import DockerBackend
from sandbox.process.backend import ProcessBackend
from sandbox.rootless.backend import RootlessBackend
from sandbox.supervision import control
from tests import roots
from tests.sandbox.conftest import Run
from tests.sandbox.docker.conftest import (  # noqa: F401
    _not_the_operators_engine,
    base_image,
    docker_backend,
    docker_spec,
    relay,
    remains_of,
    unique,
)

ROOT = Path(__file__).parents[3]
DOCKER = pytest.param("docker", marks=pytest.mark.service("docker"))
ROOTLESS = pytest.param("rootless", marks=pytest.mark.service("rootless"))
HANDS_IN = 'printf "id,label\\n1,1\\n" >"$SUBMISSION_DIR/submission.csv"\n'


def python(code: str, **values: object) -> str:
    """A start.sh that runs a Python program, in which `@name@` stands for a value."""
    code = textwrap.dedent(code)
    for name, value in values.items():
        code = code.replace(f"@{name}@", repr(value))
    return f"exec \"$MLEBENCH_PYTHON\" - <<'PYTHON'\n{code}\nPYTHON\n"


NOBODY = 65533
_AS_NOBODY = """
if [ -n "$1" ]; then
    mount --bind "$2" "$3"; mount -t tmpfs -o mode=755 none "$1"; mkdir -p "$2"; mount --bind "$3" "$2"
fi
group="$4"; shift 4
exec setpriv --reuid=65533 --regid=65533 --groups="$group" "$@"
"""


def as_nobody(code: str, *arguments: object, folder: Path, group: int = NOBODY) -> list[str]:
    """The lines that a Python program prints that runs without rights, which only root can make it do.

    In a namespace of its own for mounts, the interpreter is in a folder that everybody can read.
    """
    base = Path(sys.base_prefix).resolve()
    closed = next((each for each in reversed(base.parents) if not each.stat().st_mode & 0o001), None)
    (aside := folder / "aside").mkdir()
    shell = [
        "unshare",
        "--mount",
        "sh",
        "-e",
        "-c",
        _AS_NOBODY,
        "sh",
        str(closed or ""),
        str(base),
        str(aside),
        str(group),
    ]
    done = subprocess.run(
        [*shell, sys.executable, "-B", "-c", code, *map(str, arguments)],
        cwd=folder,
        env={**os.environ, "HOME": str(folder), "TMPDIR": str(folder), "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


@pytest.fixture
def foreign() -> Iterator[Path]:
    """A folder of a user without rights, outside of those that only root can read."""
    if os.getuid():
        pytest.skip("only root can become somebody else")
    folder = Path(tempfile.mkdtemp(dir="/tmp"))
    os.chown(folder, NOBODY, NOBODY)
    yield folder
    shutil.rmtree(folder)


@dataclasses.dataclass
class Hostile:
    """A backend that runs hostile agents."""

    backend: DockerBackend | ProcessBackend
    make_spec: Callable[..., RunSpec]

    @property
    def contained(self) -> bool:
        """Whether an engine runs the agent, and this process watches it."""
        return isinstance(self.backend, DockerBackend)

    @property
    def isolated(self) -> bool:
        return self.backend.capabilities.isolates

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


@pytest.fixture(params=["process", DOCKER, ROOTLESS])
def hostile(request: pytest.FixtureRequest) -> Iterator[Hostile]:
    """Hostile agents on each backend."""
    yield from _hostile(request, request.param)


@pytest.fixture(params=[DOCKER, ROOTLESS])
def isolated(request: pytest.FixtureRequest) -> Iterator[Hostile]:
    """Hostile agents on the backends that isolate, for attacks against which the process backend does not protect."""
    yield from _hostile(request, request.param)


@pytest.fixture
def contained(request: pytest.FixtureRequest) -> Iterator[Hostile]:
    """Hostile agents in containers."""
    yield from _hostile(request, "docker")


@pytest.fixture
def rootless(request: pytest.FixtureRequest) -> Iterator[Hostile]:
    """Hostile agents in namespaces without a container engine."""
    yield from _hostile(request, "rootless")


def _hostile(request: pytest.FixtureRequest, name: str) -> Iterator[Hostile]:
    make = request.getfixturevalue("docker_spec" if name == "docker" else "make_spec")
    backend: DockerBackend | ProcessBackend = DockerBackend() if name == "docker" else ProcessBackend()
    if name == "rootless":
        backend = RootlessBackend(scratch=roots.scratch())
    with backend:
        yield Hostile(backend, make)


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
