"""Small file systems, which tests fill. They need root, and the right to mount."""

from __future__ import annotations

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


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[SmallDisk]:
    """A file system of 20 MB."""
    place = tmp_path / "disk"
    place.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", "size=20m", "tmpfs", str(place)]
    mounted = subprocess.run(command, capture_output=True, text=True, check=False)
    if mounted.returncode:
        pytest.skip(f"no file system can be mounted here: {mounted.stderr.strip()}")
    yield SmallDisk(place)
    subprocess.run(["umount", str(place)], check=True)
