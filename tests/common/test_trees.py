"""Walks through trees of an agent use little memory and few descriptors, however deep they are."""

from __future__ import annotations

import gc
import os
import tracemalloc
from collections.abc import Iterator
from pathlib import Path

import pytest

from common import trees

DEPTH = 300
NAME = "d" * 250


@pytest.fixture
def deep(tmp_path: Path) -> Iterator[int]:
    """Descriptor of a folder with one far below it, whose path is too long to be used."""
    with trees.opened_folder(tmp_path) as top:
        for depth in range(DEPTH):
            folder = trees.folder_below(top, [NAME] * depth)
            os.mkdir(NAME, dir_fd=folder)
            os.mkdir("side", dir_fd=folder)
            os.close(folder)
        yield top


def descriptors() -> int:
    gc.collect()  # may close what other tests have left open
    return len(list(Path("/dev/fd").iterdir()))


def test_a_walk_keeps_no_paths(deep: int) -> None:
    tracemalloc.start()
    try:
        entries = sum(1 for _ in trees.walk(deep))
        peak_bytes = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert entries == 2 * DEPTH
    assert peak_bytes < 2 << 20, "the paths of all levels would have more than 10 MB"


def test_entries_know_their_paths_after_the_walk(tmp_path: Path) -> None:
    for path in ("a/b/c", "a/d", "e/b"):
        (tmp_path / path).mkdir(parents=True)
    with trees.opened_folder(tmp_path) as top:
        entries = list(trees.walk(top, skip=frozenset({"e", "b"})))
    assert sorted(entry.path for entry in entries) == ["a", "a/b", "a/b/c", "a/d"]


def test_a_deep_folder_takes_one_descriptor(deep: int, tmp_path: Path) -> None:
    before = descriptors()
    folder = trees.folder_below(deep, [NAME] * DEPTH)
    assert descriptors() == before + 1
    os.close(folder)
    with pytest.raises(FileNotFoundError):
        trees.folder_below(deep, [NAME] * 20 + ["missing"])
    assert descriptors() == before

    (tmp_path / "a" / "b" / "c").mkdir(parents=True)
    (tmp_path / "a" / "b" / "c" / "file").touch()
    with trees.opened_below(tmp_path, Path("a/b/c/file")):
        assert descriptors() == before + 3, "the top, the folder and the file"
    assert descriptors() == before
