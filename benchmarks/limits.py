"""Limits of this machine, for comparison with the measurements."""

from __future__ import annotations

import hashlib
import os
import time
from collections.abc import Callable
from pathlib import Path

from blake3 import blake3

from benchmarks.folders import fresh

_SIZE_BYTES = 256 << 20
_FILES = 5_000


def limits(work: Path) -> dict[str, float]:
    """MB/s of copying memory, writing to disk, reading from the page cache and hashing; files/s created and linked.

    Files are created in a new folder, and again in a folder from which as many were removed just before, because ext4
    does not reuse removed inodes at once.
    """
    block = os.urandom(1 << 20)
    path = work / "limit"
    folder = fresh("limits-", work)
    (folder / "0").write_bytes(block[:8192])
    megabytes = _SIZE_BYTES / 1e6
    speeds = {
        "memcpy MB/s": megabytes / _seconds(lambda: _copy(bytearray(len(block)), block)),
        "new memory MB/s": megabytes / _seconds(lambda: bytes(_SIZE_BYTES).count(1)),
        "write MB/s": megabytes / _seconds(lambda: _write(path, block)),
        "write and sync MB/s": megabytes / _seconds(lambda: _write(path, block, sync=True)),
        "read MB/s": megabytes / _seconds(lambda: _read(path)),
        "md5 MB/s": megabytes / _seconds(lambda: [hashlib.md5(block) for _ in range(_SIZE_BYTES >> 20)]),
        "blake3 MB/s": megabytes / _seconds(lambda: [blake3(block) for _ in range(_SIZE_BYTES >> 20)]),
        "create files/s": _FILES / _seconds(lambda: _create_all(folder, block[:8192])),
        "link files/s": _FILES / _seconds(lambda: _link_all(folder)),
    }
    emptied = fresh("limits-", work)
    _create_all(emptied, block[:8192])
    for created in emptied.iterdir():
        created.unlink()
    speeds["create files/s beside removed ones"] = _FILES / _seconds(lambda: _create_all(emptied, block[:8192]))
    path.unlink()
    return speeds


def _copy(target: bytearray, block: bytes) -> None:
    for _ in range(_SIZE_BYTES >> 20):
        target[:] = block


def _seconds(work: Callable[[], object]) -> float:
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def _write(path: Path, block: bytes, sync: bool = False) -> None:
    with path.open("wb", buffering=0) as file:
        for _ in range(_SIZE_BYTES >> 20):
            file.write(block)
        if sync:
            os.fsync(file.fileno())


def _read(path: Path) -> None:
    buffer = bytearray(1 << 20)
    with path.open("rb", buffering=0) as file:
        while file.readinto(buffer):
            pass


def _create_all(folder: Path, content: bytes) -> None:
    for number in range(1, _FILES):
        descriptor = os.open(f"{folder}/{number}", os.O_CREAT | os.O_EXCL | os.O_WRONLY)
        os.write(descriptor, content)
        os.close(descriptor)


def _link_all(folder: Path) -> None:
    for number in range(_FILES):
        os.link(f"{folder}/0", f"{folder}/l{number}")
