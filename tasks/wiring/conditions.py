"""Under which conditions runs are made and graded: recorded with every run, and stated in reports."""

from __future__ import annotations

import platform
import subprocess
from functools import cache
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pandas as pd

_PACKAGE = "mlebench-pipeline"
_LIBRARIES = ("pandas", "numpy", "scikit-learn", "prefect")
_SOURCE = Path(__file__).parents[2]
_CPUINFO = Path("/proc/cpuinfo")


@cache
def run_conditions() -> dict[str, str]:
    """What a run's record says of where it was made: `hardware`, `package_version` and `git_commit`."""
    return {"hardware": _hardware(), "package_version": _version(_PACKAGE) or "unknown", "git_commit": _commit()}


def conditions_of(runs: pd.DataFrame, grades: pd.DataFrame, run_group: str) -> dict[str, str]:
    """Labels and values: the network as the backend has it, and what the group was graded with."""
    own = runs[runs["run_group"] == run_group] if len(runs) else runs
    facts = {}
    unsaid = "network" not in own or own["network"].isna().all()  # only containers have a policy
    if len(own) and unsaid and set(own["backend"]) == {"process"}:
        facts["Network"] = "not restricted (process backend)"
    graded = grades[grades["run_group"] == run_group] if len(grades) else grades
    boards = sorted(graded["leaderboard"].dropna().unique()) if "leaderboard" in graded else []
    facts["Medal thresholds"] = ", ".join(boards) or "stored"
    return facts | _here()


@cache
def _here() -> dict[str, str]:
    libraries = (f"{name} {version}" for name in (_PACKAGE, *_LIBRARIES) if (version := _version(name)))
    return {
        "Graded with": ", ".join([f"Python {platform.python_version()}", *libraries]),
        "Graded on": _hardware(),
        "Source of the grader": _commit(),
    }


def _hardware() -> str:
    """Operating system, processor, cores and memory of this machine."""
    import psutil

    memory = psutil.virtual_memory().total / (1 << 30)
    system = f"{platform.system()} {platform.machine()}"
    return ", ".join(filter(None, [system, _processor(), f"{psutil.cpu_count()} cores", f"{memory:.0f} GiB"]))


def _processor() -> str:
    """The processor's name as the kernel has it; empty where it does not say."""
    try:
        lines = _CPUINFO.read_text("utf-8", "replace").splitlines()
    except OSError:
        return ""
    return next((line.partition(":")[2].strip() for line in lines if line.startswith("model name")), "")


def _version(package: str) -> str | None:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return None


@cache
def _commit() -> str:
    """The git commit of the package's own source, where that is a checkout; "-dirty" where it was changed since."""
    if not (_SOURCE / ".git").exists():
        return "installed package"
    try:
        answer = subprocess.run(
            ["git", "--no-optional-locks", "-C", str(_SOURCE), "describe", "--always", "--dirty", "--abbrev=12"],
            capture_output=True,
            text=True,
            timeout=20,
            check=True,
        )
    except (OSError, subprocess.SubprocessError):
        return "unknown commit"
    return f"commit {answer.stdout.strip()}"
