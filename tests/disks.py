"""Small file systems, which tests fill. They need root, and the right to mount."""

from __future__ import annotations

import contextlib
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest


class SmallDisk:
    """A file system in memory of a few megabytes, mounted at `path`."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def resize(self, megabytes: int) -> None:
        """Give it another size."""
        subprocess.run(["mount", "-o", f"remount,size={megabytes}m", str(self.path)], check=True)

    def fill(self, leave: int = 0) -> None:
        """Take all room but `leave` bytes, with the file `filling`."""
        with (self.path / "filling").open("wb") as file:
            try:
                while True:
                    file.write(bytes(1 << 16))
                    file.flush()
            except OSError:
                pass
        size = (self.path / "filling").stat().st_size
        with (self.path / "filling").open("r+b") as file:
            file.truncate(max(0, size - leave))

    def empty(self) -> None:
        """Give the room back."""
        (self.path / "filling").unlink()


@contextlib.contextmanager
def mounted(folder: Path, options: str) -> Iterator[Path]:
    """A new file system in memory, mounted at `folder`. Skips the test if nothing can be mounted here."""
    folder.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", options, "tmpfs", str(folder)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        pytest.skip(f"no file system can be mounted here: {done.stderr.strip()}")
    yield folder
    subprocess.run(["umount", "--lazy", str(folder)], check=True)


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[SmallDisk]:
    """A file system of 20 MB."""
    with mounted(tmp_path / "disk", "size=20m") as folder:
        yield SmallDisk(folder)
