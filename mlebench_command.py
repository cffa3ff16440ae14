"""The command `mlebench`, under a name that no folder of a user has: it looks whose modules Python would import.

The names of our packages are general. A folder or file of such a name in PYTHONPATH, or in the directory from which
`python -m` is called, would be imported instead, and executed. So this module imports nothing of ours before it has
looked, and looking executes nothing.
"""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path

_PACKAGES = (
    "common",
    "competitions",
    "grading",
    "storage",
    "sandbox",
    "tasks",
    "flows",
    "deployments",
    "training",
    "mlebench",
)
_ROOT = Path(__file__).resolve().parent
_PUBLISHED = "mlebench-*.dist-info"
"""The installed distribution of the published benchmark; ours is mlebench_pipeline."""


def in_the_way() -> str:
    """What Python would import instead of one of our packages, and what to do about it; empty if all are ours."""
    for name in _PACKAGES:
        spec = None if name in sys.modules else importlib.util.find_spec(name)
        if spec is None:
            continue
        paths = [spec.origin] if spec.origin else list(spec.submodule_search_locations or ())
        foreign = [path for path in paths if not Path(path).resolve().is_relative_to(_ROOT / name)]
        if foreign:
            return (
                f"mlebench: {foreign[0]} has the name of a package of mlebench and would be imported instead; remove "
                "its folder from PYTHONPATH, call mlebench from another directory, or rename it"
            )
    if any(_ROOT.glob(_PUBLISHED)):
        return (
            "mlebench: the published benchmark is installed here too, and has a package of the same name; run `pip "
            "uninstall mlebench` and install mlebench-pipeline again, or use an environment for each"
        )
    return ""


def require_own_packages() -> None:
    """End the process of a `python -m` with exit code 2 if something is in the way; elsewhere, raise `ImportError`."""
    if reason := in_the_way():
        if sys.argv[:1] == ["-m"]:  # as long as `python -m` looks for its module
            sys.stderr.write(f"{reason}\n")
            raise SystemExit(2)
        raise ImportError(reason)


def main() -> int:
    """Run the command; returns the exit code."""
    if reason := in_the_way():
        sys.stderr.write(f"{reason}\n")
        return 2
    from flows.cli import main as run

    return run()
