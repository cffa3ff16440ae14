"""A full directory for temporary files is named, because it is often another disk than that of the store."""

from __future__ import annotations

import tempfile

import pytest

from common.causes import cause_of, explain
from common.errors import UserError
from common.temporary import require_room
from storage.datasets.executors import Serial
from tests.disks import SmallDisk, small_disk

__all__ = ["small_disk"]


def test_it_is_named(small_disk: SmallDisk, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TMPDIR", str(small_disk.path))
    monkeypatch.setattr(tempfile, "tempdir", str(small_disk.path))
    require_room()

    def fill(megabytes: int) -> None:
        with tempfile.TemporaryFile() as file:
            file.write(bytes(megabytes << 20))

    with pytest.raises(OSError, match="No space left") as caught:
        list(Serial().map(fill, [40]))
    assert cause_of(caught.value).kind == "disk full"
    assert f"or for temporary files in {small_disk.path} (TMPDIR)" in explain(caught.value)
    small_disk.fill()
    with pytest.raises(UserError, match=f"{small_disk.path}, the directory for temporary files, is full"):
        require_room()


def test_an_error_that_names_a_file_stays() -> None:
    def write(_: int) -> None:
        raise OSError(28, "No space left on device", "/store/a")

    with pytest.raises(OSError, match="/store/a"):
        list(Serial().map(write, [1]))
