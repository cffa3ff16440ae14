"""Plain files take no room twice: a hard link, else shared blocks, else a copy."""

from __future__ import annotations

import fcntl
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from common import cloning
from competitions import registry
from competitions.preparing.declaration import Copy
from competitions.preparing.download import Download
from storage.datasets.execute import execute
from storage.datasets.plan import group_copies
from storage.writers import Destination

SIZE = 32 << 20


def copied(source: Path, out: Path) -> Path:
    """`source` as the executor puts it into a dataset."""
    download = Download.open(str(source.parent))
    tasks = group_copies([("public", "copy", Copy(download.file(source.name)))], ["public/copy"])
    _, _, (size,), *_ = execute(tasks, registry.get("digits"), download, Destination(str(out)))
    assert size == source.stat().st_size
    assert (out / "public" / "copy").read_bytes() == source.read_bytes()
    return out / "public" / "copy"


@pytest.fixture
def source(tmp_path: Path) -> Path:
    (tmp_path / "raw").mkdir()
    (tmp_path / "raw" / "file").write_bytes(b"content")
    return tmp_path / "raw" / "file"


def refuse(*_: object) -> None:
    raise OSError(18, "Invalid cross-device link")


def test_a_hard_link_is_tried_first(source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cloning, "clone", refuse)
    assert copied(source, tmp_path / "out").samefile(source)


def test_then_a_clone_and_then_a_copy(source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []

    def clone(descriptor: int, request: int, original: int) -> None:
        asked.append(request)
        raise OSError(95, "Operation not supported")

    monkeypatch.setattr(cloning.os, "link", refuse)
    monkeypatch.setattr(fcntl, "ioctl", clone)
    target = copied(source, tmp_path / "out")
    assert asked == [0x40049409]
    assert not target.samefile(source)
    assert [path.name for path in target.parent.iterdir()] == ["copy"], "nothing half made is left"


def test_what_was_there_is_replaced_not_written_through(source: Path, tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.write_bytes(b"keep")
    (tmp_path / "out" / "public").mkdir(parents=True)
    os.link(other, tmp_path / "out" / "public" / "copy")
    copied(source, tmp_path / "out")
    assert other.read_bytes() == b"keep"


@pytest.fixture
def xfs(tmp_path: Path) -> Iterator[Path]:
    """A small file system that can share blocks. Needs root, and the right to mount."""
    image, place = tmp_path / "image", tmp_path / "xfs"
    place.mkdir()
    with image.open("wb") as file:
        file.truncate(400 << 20)
    try:
        made = subprocess.run(["mkfs.xfs", "-q", "-m", "reflink=1", str(image)], capture_output=True, check=False)
    except FileNotFoundError:
        pytest.skip("mkfs.xfs is not installed (Debian: xfsprogs)")
    mount = ["mount", "-o", "loop", str(image), str(place)]
    mounted = subprocess.run(mount, capture_output=True, text=True, check=False)
    if made.returncode or mounted.returncode:
        pytest.skip(f"no XFS can be mounted here: {made.stderr.decode().strip()} {mounted.stderr.strip()}")
    yield place
    subprocess.run(["umount", str(place)], check=True)


def test_a_clone_takes_no_room(xfs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (xfs / "raw").mkdir()
    (xfs / "raw" / "file").write_bytes(os.urandom(SIZE))
    os.sync()
    before = os.statvfs(xfs).f_bfree
    monkeypatch.setattr(cloning.os, "link", refuse)
    target = copied(xfs / "raw" / "file", xfs / "out")
    os.sync()
    taken = (before - os.statvfs(xfs).f_bfree) * os.statvfs(xfs).f_bsize
    assert taken < SIZE // 4
    target.write_bytes(b"changed")
    assert (xfs / "raw" / "file").stat().st_size == SIZE, "the original stays what it is"
