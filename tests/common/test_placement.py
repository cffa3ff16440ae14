"""Folders that are created apart from each other on the disk."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

from common.placement import make_apart


def test_a_folder_is_created_once(tmp_path: Path) -> None:
    make_apart(str(tmp_path / "train"), str(tmp_path))
    (tmp_path / "train" / "file").touch()
    make_apart(str(tmp_path / "train"), str(tmp_path))
    assert [path.name for path in tmp_path.iterdir()] == ["train"]
    assert (tmp_path / "train" / "file").exists()


def test_by_several_at_once(tmp_path: Path) -> None:
    """Each may have files in it before the others are done."""
    start = threading.Barrier(8)

    def create(number: int) -> None:
        start.wait()
        make_apart(str(tmp_path / "train"), str(tmp_path))
        (tmp_path / "train" / str(number)).touch()

    threads = [threading.Thread(target=create, args=[number]) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [path.name for path in tmp_path.iterdir()] == ["train"]
    assert {path.name for path in (tmp_path / "train").iterdir()} == {str(number) for number in range(8)}


def test_a_file_in_the_way_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "train").touch()
    with pytest.raises(NotADirectoryError):
        make_apart(str(tmp_path / "train"), str(tmp_path))
    assert [path.name for path in tmp_path.iterdir()] == ["train"]
