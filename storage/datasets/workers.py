"""Set-up of Dask workers, and the proof that they run the client's code.

A worker that imported other code or other versions of the libraries than its client would write other bytes under the
client's content key. It therefore refuses the work, and has to be restarted. What counts is the code that a process has
*imported*, not what is on its disk now: the hash of the code is computed when the process is set up, and kept.
"""

from __future__ import annotations

import hashlib
import platform
import re
import socket
import sys
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from importlib import import_module, metadata
from pathlib import Path
from typing import Any

from distributed.diagnostics.plugin import WorkerPlugin

from common.errors import UserError

ONE_MACHINE = "mlebench"
"""Name of workers that share the memory of one machine among them: they are mlebench-0, mlebench-1 and so on."""
DECLARING = "declaring"
"""The Dask resource of workers that have enough memory to run a prepare.py. A worker offers one or none."""
DECLARING_BYTES = 5 << 30
"""Memory limit from which a worker may declare: 4 GiB for the tables, and Dask pauses a worker at 80 % of its limit."""

_ROOT = Path(__file__).parents[2]
_PACKAGES = ("common", "competitions", "storage")
# Libraries that decide which bytes a prepare.py writes, with the names of their modules.
_LIBRARIES = {"numpy": "numpy", "pandas": "pandas", "pyarrow": "pyarrow", "scikit-learn": "sklearn"}
PRELOADED = (
    "distributed",
    "distributed.nanny",
    "storage.datasets.materialise",
    "pandas",
    "pyarrow.compute",
    "blake3",
    "pydantic_settings",  # a worker's `set_up` may read settings
)
"""Modules that every chunk needs."""


def declaring_at_once() -> int:
    """The number of prepare.py that may run at the same time in the memory of this machine."""
    import psutil

    return max(1, int(psutil.virtual_memory().total // DECLARING_BYTES))


@dataclass(frozen=True)
class Environment:
    """What decides the bytes that a process writes: the hash of our code, and versions by name."""

    code: str
    versions: tuple[tuple[str, str], ...]

    def require(self) -> None:
        """Raise `UserError` unless this process has the same environment."""
        mine = environment()
        if mine == self:
            return
        theirs = dict(self.versions)
        differences = [
            f"{name} {version} instead of {theirs.get(name, 'none')}"
            for name, version in mine.versions
            if version != theirs.get(name)
        ]
        imported = ", ".join(differences) or "other code than this process"
        raise UserError(f"a Dask worker on {socket.gethostname()} has imported {imported}; restart the workers")


@cache  # global, because modules are imported once a process
def environment() -> Environment:
    """The environment of this process. The first call determines it, and should come soon after the imports."""
    digest = hashlib.blake2b(digest_size=8)
    for package in _PACKAGES:
        for path in sorted((_ROOT / package).rglob("*.py")):
            name = path.relative_to(_ROOT).as_posix()
            if not name.startswith("competitions/catalog/"):  # compared for each job, see `storage.datasets.job`
                digest.update(name.encode() + b"\0" + path.read_bytes() + b"\0")
    versions = {"python": ".".join(platform.python_version_tuple()[:2])}
    versions |= {name: _version(name, module) for name, module in _LIBRARIES.items()}
    return Environment(digest.hexdigest(), tuple(sorted(versions.items())))


def _version(name: str, module: str) -> str:
    """The version that is imported, or that would be imported."""
    if version := getattr(sys.modules.get(module), "__version__", None):  # not if another thread is importing it
        return str(version)
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return "none"


@cache  # global, because it must run once per worker process
def set_up_once(set_up: Callable[[], None] | None) -> None:
    """Import what every chunk needs, and call `set_up`, unless that has been done."""
    for name in PRELOADED:
        import_module(name)
    environment()
    if set_up is not None:
        set_up()


class WorkerSetup(WorkerPlugin):
    """Sets up the workers of a scheduler, those that start later included, once in each process.

    Args:
        set_up: called in each worker process. It is pickled by name, so it must be a module-level function.
        declaring: number of workers of a local cluster that may declare at the same time; None: every worker with a
            memory limit of `DECLARING_BYTES`.
    """

    idempotent = True

    def __init__(self, set_up: Callable[[], None] | None = None, declaring: int | None = None) -> None:
        self.set_up, self.declaring = set_up, declaring
        # Another client with other code may have registered a plugin already.
        self.name = f"mlebench-{environment().code}-{set_up.__module__ if set_up else ''}"

    async def setup(self, worker: Any) -> None:
        """Called by Dask on each worker."""
        set_up_once(self.set_up)
        await worker.set_resources(**{DECLARING: float(self._may_declare(worker))})

    def _may_declare(self, worker: Any) -> bool:
        if self.declaring is not None and isinstance(worker.name, int):
            return worker.name < self.declaring
        if number := re.fullmatch(rf"{ONE_MACHINE}(?:-(\d+))?", str(worker.name)):
            return int(number[1] or 0) < declaring_at_once()
        limit = worker.memory_manager.memory_limit  # None if there is no limit
        return limit is None or limit >= DECLARING_BYTES
