"""Under which conditions a group's numbers were made, for its report."""

from __future__ import annotations

import platform
import subprocess
from functools import cache
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pandas as pd

_PACKAGES = ("mlebench-pipeline", "pandas", "numpy", "scikit-learn", "prefect")
_SOURCE = Path(__file__).parents[1]


def conditions_of(runs: pd.DataFrame, run_group: str) -> dict[str, str]:
    """Labels and values: the network as the backend has it, and what the report was graded with."""
    own = runs[runs["run_group"] == run_group] if len(runs) else runs
    facts = {}
    if len(own) and "network" not in own and set(own["backend"]) == {"process"}:
        facts["Network"] = "not restricted (process backend)"
    return facts | _here()


@cache
def _here() -> dict[str, str]:
    import psutil

    memory = psutil.virtual_memory().total / (1 << 30)
    return {
        "Graded with": ", ".join([f"Python {platform.python_version()}", *_versions()]),
        "Graded on": f"{platform.system()} {platform.machine()}, {psutil.cpu_count()} cores, {memory:.0f} GiB",
        "Source of the grader": _commit(),
    }


def _versions() -> list[str]:
    found = []
    for name in _PACKAGES:
        try:
            found.append(f"{name} {metadata.version(name)}")
        except metadata.PackageNotFoundError:
            continue
    return found


def _commit() -> str:
    """The git commit of the package's own source, where that is a checkout."""
    if not (_SOURCE / ".git").exists():
        return "installed package"
    try:
        answer = subprocess.run(
            ["git", "-C", str(_SOURCE), "describe", "--always", "--dirty", "--abbrev=12"],
            capture_output=True,
            text=True,
            timeout=20,
            check=True,
        )
    except (OSError, subprocess.SubprocessError):
        return "unknown commit"
    return f"commit {answer.stdout.strip()}"
