"""Facts about this machine and the installed source: hardware, package versions, git commit."""

from __future__ import annotations

import platform
import subprocess
from collections import Counter
from functools import cache
from importlib import metadata
from pathlib import Path

_PACKAGE = "mlebench-pipeline"
_LIBRARIES = ("pandas", "numpy", "scikit-learn", "prefect")
_SOURCE = Path(__file__).parents[1]
_CPUINFO = Path("/proc/cpuinfo")
_NVIDIA = Path("/proc/driver/nvidia/gpus")


@cache
def provenance() -> dict[str, str]:
    """The fields `hardware`, `package_version` and `git_commit` of a run's record."""
    return {"hardware": hardware(), "package_version": version(_PACKAGE) or "unknown", "git_commit": commit()}


def software() -> str:
    """Python, this package and the libraries that scores depend on, with their versions."""
    libraries = (f"{name} {installed}" for name in (_PACKAGE, *_LIBRARIES) if (installed := version(name)))
    return ", ".join([f"Python {platform.python_version()}", *libraries])


@cache
def hardware() -> str:
    """Operating system, processor, cores, memory and NVIDIA GPUs of this machine."""
    import psutil

    memory = psutil.virtual_memory().total / (1 << 30)
    system = f"{platform.system()} {platform.machine()}"
    parts = [system, _processor(), f"{psutil.cpu_count()} cores", f"{memory:.0f} GiB", *_gpus()]
    return ", ".join(filter(None, parts))


def _processor() -> str:
    """The processor's name as the kernel reports it; empty if it reports none."""
    try:
        lines = _CPUINFO.read_text("utf-8", "replace").splitlines()
    except OSError:
        return ""
    return next((line.partition(":")[2].strip() for line in lines if line.startswith("model name")), "")


def _gpus() -> list[str]:
    """The names of the NVIDIA GPUs as their driver reports them, each with its number if there are several."""
    counts: Counter[str] = Counter()
    for path in sorted(_NVIDIA.glob("*/information")):
        try:
            lines = path.read_text("utf-8", "replace").splitlines()
        except OSError:
            continue
        counts.update(name.strip() for key, _, name in (line.partition(":") for line in lines) if key == "Model")
    return [name if count == 1 else f"{count} x {name}" for name, count in counts.items()]


def version(package: str) -> str | None:
    """The installed version of a package; None if it is not installed."""
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return None


@cache
def commit() -> str:
    """The git commit of the package's source if it is a checkout; ends in "-dirty" if it has uncommitted changes."""
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
