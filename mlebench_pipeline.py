"""The flows of all deployments, under a name that no folder of a user has: Prefect imports them from here.

Prefect puts the working directory of a flow run first on the path of modules, and in `PYTHONPATH` for the processes
that it starts. A user's own `flows/` or `tasks.py` in that directory would be imported instead of our package. This
module removes the directory from both, and imports our packages from its own folder before it imports a flow.
"""

from __future__ import annotations

import importlib
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from flows.attempt import attempt
    from flows.full_benchmark import full_benchmark
    from flows.nightly import nightly
    from flows.recovery import recovery
    from flows.unattended import benchmark, grading, preparation

_PACKAGES = ("common", "competitions", "grading", "storage", "sandbox", "tasks", "flows", "mlebench")
_MODULES = {
    "attempt": "flows.attempt",
    "benchmark": "flows.unattended",
    "full_benchmark": "flows.full_benchmark",
    "grading": "flows.unattended",
    "nightly": "flows.nightly",
    "preparation": "flows.unattended",
    "recovery": "flows.recovery",
}
_ROOT = str(Path(__file__).resolve().parent)


def _forget_working_directory() -> None:
    """Remove the working directory from the paths of modules, of this process and of those that it starts.

    The first entry, which Prefect adds while it imports this module, stays: Prefect removes it itself, and fails if it
    is not there. A working directory that contains our packages stays as well.
    """
    working_directory = os.path.realpath(Path.cwd())
    if working_directory == _ROOT:
        return
    sys.path[1:] = [path for path in sys.path[1:] if os.path.realpath(path) != working_directory]
    inherited = [path for path in os.environ.get("PYTHONPATH", "").split(os.pathsep) if path]
    if inherited:
        os.environ["PYTHONPATH"] = os.pathsep.join(
            path for path in inherited if os.path.realpath(path) != working_directory
        )


def _import_packages() -> None:
    """Import our packages from the folder of this module, whatever comes first on the path of modules."""
    sys.path.insert(0, _ROOT)
    try:
        for name in _PACKAGES:
            importlib.import_module(name)
    finally:
        sys.path.remove(_ROOT)


def __getattr__(name: str) -> Any:
    """The flow of this name. Only its module is imported: a process runs one flow, and all take 0.5 s to import."""
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(_MODULES[name]), name)


_forget_working_directory()
_import_packages()

__all__ = ["attempt", "benchmark", "full_benchmark", "grading", "nightly", "preparation", "recovery"]
