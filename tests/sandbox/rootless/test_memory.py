"""Memory that no process is shown to have."""

from __future__ import annotations

import mmap
import os
from pathlib import Path

from sandbox.limits import MIB
from sandbox.rootless import memory


def test_shared_mappings_without_a_file_count_once_and_private_ones_not_at_all() -> None:
    before = memory.shared_bytes([os.getpid()])
    with mmap.mmap(-1, 30 * MIB), mmap.mmap(-1, 50 * MIB, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS):
        assert memory.shared_bytes([os.getpid(), os.getpid(), 2**22 + 1]) - before == 30 * MIB


def test_a_machine_with_little_memory_left(tmp_path: Path) -> None:
    for total, left, expected in (
        (64000, 600, None),
        (64000, 500, 500 * MIB),
        (4000, 300, None),
        (4000, 100, 100 * MIB),
    ):
        (tmp_path / "meminfo").write_text(
            f"MemTotal: {total * 1024} kB\nMemAvailable:  {left * 1024} kB\nHugePages: 0\n"
        )
        assert memory.scarce(tmp_path) == expected
    assert (memory.scarce() or 0) < memory.FLOOR_BYTES
