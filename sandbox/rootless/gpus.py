"""The device files and driver libraries that a run with NVIDIA GPUs needs in its root file system."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from pathlib import Path

LIBRARIES = Path("/run/nvidia")
"""Where the driver's files are for an agent: the root file system is read-only, and has no place for them."""
_CONTROL = ("nvidiactl", "nvidia-uvm", "nvidia-uvm-tools", "nvidia-modeset")
_FOLDERS = ("usr/lib/x86_64-linux-gnu", "usr/lib/aarch64-linux-gnu", "usr/lib64", "usr/lib", "usr/lib/wsl/lib")
_DRIVER = re.compile(r"lib(cuda|cudadebugger|nvcuvid|nvidia-[a-z0-9-]+|nvoptix)\.so(\.\d+)*")
"""Libraries of the driver. Those of CUDA, such as libcudart, belong to the image."""


@dataclass(frozen=True)
class Gpus:
    """What a run with GPUs gets of the machine."""

    devices: tuple[Path, ...]
    """Device files, at the same path for the agent."""
    files: tuple[tuple[Path, Path], ...]
    """Libraries and programs of the driver: the path on this machine, and the one for the agent."""

    def environment(self, path: str) -> dict[str, str]:
        """Variables by which the agent finds the driver; `path` is its PATH without it."""
        if not self.files:
            return {}
        return {"LD_LIBRARY_PATH": str(LIBRARIES / "lib"), "PATH": f"{path}:{LIBRARIES / 'bin'}"}


NONE = Gpus((), ())


def gpus(ids: Collection[str], listed: Sequence[str] = (), top: Path = Path("/")) -> Gpus:
    """What a run needs of this machine for its GPUs.

    Args:
        ids: the GPUs' ids, as `sandbox.host.gpus.installed` has them.
        listed: from `driver_files`; without any, the folders of distributions are searched.
        top: the root of the machine.
    """
    if not ids:
        return NONE
    numbers = [number for uuid, number in _minors(top).items() if uuid in ids]
    names = [*(f"nvidia{number}" for number in sorted(numbers)), *_CONTROL]
    devices = [top / "dev" / name for name in names if (top / "dev" / name).exists()]
    devices += sorted((top / "dev" / "nvidia-caps").glob("nvidia-cap*"))
    paths = [top / line.strip().lstrip("/") for line in listed if line.strip().startswith("/")] or _known(top)
    files = {path: LIBRARIES / ("lib" if ".so" in path.name else "bin") / path.name for path in paths}
    return Gpus(tuple(Path("/") / device.relative_to(top) for device in devices), tuple(files.items()))


def driver_files() -> list[str]:
    """The driver's files, as NVIDIA's own program lists them; none without it."""
    command = ["nvidia-container-cli", "list", "--libraries", "--binaries"]
    try:
        return subprocess.run(command, capture_output=True, text=True, timeout=30, check=True).stdout.splitlines()
    except (OSError, subprocess.SubprocessError):
        return []


def _minors(top: Path) -> dict[str, int]:
    """The number of the device file of each GPU."""
    numbers = {}
    for file in sorted((top / "proc/driver/nvidia/gpus").glob("*/information")):
        facts = dict(line.partition(":")[::2] for line in file.read_text("utf-8").splitlines())
        numbers[facts.get("GPU UUID", "").strip()] = int(facts.get("Device Minor", "0"))
    return numbers


def _known(top: Path) -> list[Path]:
    """The driver's files in the folders of distributions; of files of the same name, the first."""
    found: dict[str, Path] = {}
    for folder in _FOLDERS:
        for path in sorted((top / folder).glob("lib*.so*")):
            if _DRIVER.fullmatch(path.name):
                found.setdefault(path.name, path)
    program = top / "usr/bin/nvidia-smi"
    return [*found.values(), *([program] if program.exists() else [])]
