"""Folders that are created apart from each other on the disk."""

from __future__ import annotations

import os
import struct
import sys
import threading
from pathlib import Path

import pytest

from common.placement import _GET, _SET, _TOP, make_apart


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


def attributes(folder: Path) -> int:
    """The attributes of a folder as lsattr shows them. Raises `OSError` where the file system has none."""
    import fcntl

    descriptor = os.open(folder, os.O_RDONLY)
    try:
        (flags,) = struct.unpack("l", fcntl.ioctl(descriptor, _GET, bytes(8)))
    finally:
        os.close(descriptor)
    return int(flags)


@pytest.mark.skipif(sys.platform != "linux", reason="attributes of folders are Linux's")
def test_the_nursery_places_folders_by_their_names(tmp_path: Path) -> None:
    import fcntl

    nursery, probe = tmp_path / "nursery", tmp_path / "probe"
    nursery.mkdir()
    probe.mkdir()
    try:
        descriptor = os.open(probe, os.O_RDONLY)
        try:
            fcntl.ioctl(descriptor, _SET, struct.pack("l", attributes(probe) | _TOP))
        finally:
            os.close(descriptor)
    except OSError as error:
        pytest.skip(f"the file system of {tmp_path} has no attribute T ({error})")
    if not attributes(probe) & _TOP:
        pytest.skip(f"the file system of {tmp_path} does not keep the attribute T")
    before = attributes(nursery)
    assert not before & _TOP
    make_apart(str(tmp_path / "train"), str(nursery))
    assert attributes(nursery) == before | _TOP
    assert not list(nursery.iterdir())
