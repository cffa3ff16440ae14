"""Destinations: small files in one call, links, and never half a file."""

from __future__ import annotations

import hashlib
import io
import os
from pathlib import Path

import pytest
from blake3 import blake3

from storage import writers
from storage.writers import Destination, HashingWriter


@pytest.mark.parametrize("url", ["{}", "memory://{}"])
@pytest.mark.parametrize("size", [0, 1, 5000])
def test_a_small_file_is_what_was_put(tmp_path: Path, url: str, size: int) -> None:
    destination = Destination(url.format(tmp_path))
    data = os.urandom(size)
    for _ in range(2):  # the second time it is there already
        written = destination.put("a/b", data, md5=True)
        assert (written.bytes, written.hash, written.md5) == (
            size,
            blake3(data).hexdigest(),
            hashlib.md5(data).hexdigest(),
        )
        assert destination.fs.cat_file(destination.path("a/b")) == data


def test_putting_again_does_not_write_through_a_hard_link(tmp_path: Path) -> None:
    (tmp_path / "raw").write_bytes(b"raw")
    destination = Destination(str(tmp_path / "out"))
    destination.link("a", str(tmp_path / "raw"))
    destination.put("a", b"changed")
    assert (tmp_path / "raw").read_bytes() == b"raw"
    assert (tmp_path / "out/a").read_bytes() == b"changed"


def test_a_full_disk_leaves_no_small_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(descriptor: int, data: bytes) -> int:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(writers.os, "write", full)
    with pytest.raises(OSError, match="No space"):
        Destination(str(tmp_path)).put("a", b"data")
    assert list(tmp_path.iterdir()) == []


def test_what_a_file_takes_in_parts_is_written_whole(tmp_path: Path) -> None:
    class Slow:
        def __init__(self) -> None:
            self.taken = b""

        def write(self, data: bytes) -> int:
            self.taken += bytes(data[:3])
            return min(3, len(data))

    sink = Slow()
    writer = writers.HashingWriter(sink)  # type: ignore[arg-type]
    assert writer.write(b"0123456789") == 10
    assert sink.taken == b"0123456789"


@pytest.mark.parametrize("size", [0, 10, writers.BLOCK_BYTES - 1, writers.BLOCK_BYTES, 3 * writers.BLOCK_BYTES + 5])
def test_a_link_is_hashed_whole(tmp_path: Path, size: int) -> None:
    data = os.urandom(size)
    (tmp_path / "raw").write_bytes(data)
    destination = Destination(str(tmp_path / "out"))
    for _ in range(2):
        written = destination.link("a", str(tmp_path / "raw"), True)
        assert written is not None
        assert (written.bytes, written.hash) == (size, blake3(data).hexdigest())
        assert written.md5 == hashlib.md5(data).hexdigest()
    assert (tmp_path / "raw").stat().st_nlink == 2


def test_what_is_half_written_does_not_lie_among_the_files(tmp_path: Path) -> None:
    destination = Destination(str(tmp_path), "drafts")
    with destination.open("public/a") as writer:
        writer.write(b"half")
        assert list((tmp_path / "public").iterdir()) == []
        assert [path.read_bytes() for path in (tmp_path / "drafts").iterdir()] == [b"half"]
    assert (tmp_path / "public" / "a").read_bytes() == b"half"
    assert list((tmp_path / "drafts").iterdir()) == []


def test_two_writers_of_one_file_do_not_meet(tmp_path: Path) -> None:
    destination = Destination(str(tmp_path))
    first, second = destination.open("a"), destination.open("a")
    first.__enter__().write(b"first")
    second.__enter__().write(b"second")
    first.__exit__(None, None, None)
    assert (tmp_path / "a").read_bytes() == b"first"
    second.__exit__(None, None, None)
    assert (tmp_path / "a").read_bytes() == b"second"
    assert list(tmp_path.iterdir()) == [tmp_path / "a"]


def test_md5_of_pieces_of_any_kind_in_their_order() -> None:
    contents = [os.urandom(3 << 20) for _ in range(4)]
    buffer = bytearray(3 << 20)
    expected = hashlib.md5()
    writer = HashingWriter(io.BytesIO(), md5=True)
    for content in contents:
        buffer[:] = content
        for piece in (content, content[:9], memoryview(buffer), content):
            writer.write(piece)
            expected.update(piece)
            buffer[:] = bytes(len(buffer))  # a buffer may be used again as soon as it is written
            buffer[:] = content
        writer.write(memoryview(buffer))
        expected.update(buffer)
        buffer[:] = bytes(len(buffer))
    assert writer.written().md5 == expected.hexdigest()
