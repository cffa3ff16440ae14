"""Zip archives: what `zipfile` reads is what we read, at any depth; damage is named and never passes."""

from __future__ import annotations

import io
import random
import zipfile
import zlib
from pathlib import Path

import pytest

from competitions.errors import DownloadError
from competitions.preparing.archives.containers import open_container
from competitions.preparing.archives.nested import open_nested
from competitions.preparing.archives.zips import ZipContainer

FILES = {"a.txt": b"abc" * 1000, "empty": b"", "folder/ü.bin": random.Random(0).randbytes(5000), "b,c.txt": b"x"}


def archive(files: dict[str, bytes] = FILES, method: int = zipfile.ZIP_DEFLATED, prefix: bytes = b"") -> bytes:
    sink = io.BytesIO(prefix)
    sink.seek(0, io.SEEK_END)
    with zipfile.ZipFile(sink, "a" if prefix else "w", method) as file:
        file.mkdir("empty folder")
        for name, content in files.items():
            file.writestr(name, content)
    return sink.getvalue()


def every_way(container: ZipContainer) -> list[dict[str, bytes]]:
    return [
        {name: container.read(name) for name in container.sizes},
        {name: container.open(name).read() for name in container.sizes},
        {name: file.read() for name, file in container.stream(container.sizes)},
    ]


@pytest.mark.parametrize("method", [zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
@pytest.mark.parametrize("prefix", [b"", b"#!/bin/sh\n"])
def test_all_ways_of_reading_agree(tmp_path: Path, method: int, prefix: bytes) -> None:
    (tmp_path / "x.zip").write_bytes(archive(method=method, prefix=prefix))
    container = open_container(str(tmp_path / "x.zip"))
    assert isinstance(container, ZipContainer)
    assert every_way(container) == [FILES] * 3
    assert container.sizes == {name: len(content) for name, content in FILES.items()}


@pytest.mark.parametrize("inner", [zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED])
@pytest.mark.parametrize("outer", [zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED])
def test_nested_archives_are_read_in_place(tmp_path: Path, inner: int, outer: int) -> None:
    twice = archive({"in/er.zip": archive({"core.zip": archive(method=inner)}, outer), "other": b"1"}, outer)
    (tmp_path / "x.zip").write_bytes(twice)
    container = open_nested(open_container(str(tmp_path / "x.zip")), "in/er.zip", "x")
    core = open_nested(container, "core.zip", "y")
    assert isinstance(core, ZipContainer)
    assert every_way(core) == [FILES] * 3
    for name in FILES:
        with core.compressed(name) as stream:
            assert stream.read() == core.read_compressed(name)
        assert b"".join(core.checked(name)) == core.read_compressed(name)


def test_a_long_extra_field_costs_a_second_read(tmp_path: Path) -> None:
    info = zipfile.ZipInfo("a")
    info.extra = b"\xfe\xca" + (400).to_bytes(2, "little") + b"\0" * 400
    with zipfile.ZipFile(tmp_path / "x.zip", "w") as file:
        file.writestr(info, b"content")
    container = open_container(str(tmp_path / "x.zip"))
    assert isinstance(container, ZipContainer)
    assert container.read("a") == b"content"
    assert b"".join(container.checked("a")) == b"content"


def test_zip64_fields_are_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(zipfile, "ZIP64_LIMIT", 100)  # every size and offset above moves to the long fields
    monkeypatch.setattr(zipfile, "ZIP_FILECOUNT_LIMIT", 2)
    (tmp_path / "x.zip").write_bytes(archive())
    container = open_container(str(tmp_path / "x.zip"))
    assert isinstance(container, ZipContainer)
    assert every_way(container) == [FILES] * 3


@pytest.mark.parametrize("method", [zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED])
def test_a_flipped_bit_is_found(tmp_path: Path, method: int) -> None:
    content = random.Random(1).randbytes(4000)
    data = bytearray(archive({"a": content}, method))
    data[2000] ^= 1
    (tmp_path / "x.zip").write_bytes(data)
    container = open_container(str(tmp_path / "x.zip"))
    assert isinstance(container, ZipContainer)
    with pytest.raises(DownloadError, match=r"x\.zip: a is damaged .*download it again"):
        container.read("a")


@pytest.mark.parametrize("method", [zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED])
@pytest.mark.parametrize("nested", [False, True])
def test_small_members_are_right_or_damaged(tmp_path: Path, method: int, nested: bool) -> None:
    """Whichever bit of the first member is flipped, in a file and in memory."""
    content = random.Random(2).randbytes(60)
    good = archive({"a.bin": content, "b": b"2"}, method)
    first = good.index(b"a.bin") - 30
    for place in range(first, good.index(b"PK", first + 4)):
        data = bytearray(good)
        data[place] ^= 1 << place % 8
        path = tmp_path / "x.zip"
        path.write_bytes(archive({"in.zip": bytes(data)}, zipfile.ZIP_DEFLATED) if nested else data)
        container = open_container(str(path))
        container = open_nested(container, "in.zip", "in.zip") if nested else container
        assert isinstance(container, ZipContainer)
        try:
            stored = b"".join(container.checked("a.bin"))
        except DownloadError as error:
            assert "download it again" in str(error)  # noqa: PT017
        else:  # a time, or bits that deflate does not use
            deflated = method == zipfile.ZIP_DEFLATED
            assert (zlib.decompress(stored, -zlib.MAX_WBITS) if deflated else stored) == content


@pytest.mark.parametrize("keep", [0, 1, 500, -1, -30])
def test_a_cut_archive_does_not_open(tmp_path: Path, keep: int) -> None:
    (tmp_path / "x.zip").write_bytes(archive()[:keep])
    with pytest.raises(DownloadError, match="not a complete zip archive"):
        open_container(str(tmp_path / "x.zip"))


def test_a_directory_of_nonsense_does_not_open(tmp_path: Path) -> None:
    data = bytearray(archive())
    data[data.index(b"PK\1\2") + 2] = 9
    (tmp_path / "x.zip").write_bytes(data)
    with pytest.raises(DownloadError, match="Bad magic number"):
        open_container(str(tmp_path / "x.zip"))


@pytest.mark.parametrize("method", [zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED])
def test_a_stream_reads_lines_and_any_place(tmp_path: Path, method: int) -> None:
    content = b"".join(b"%d %b\n" % (number, b"x" * (number % 300)) for number in range(20_000)) + b"0" * (9 << 20)
    (tmp_path / "x.zip").write_bytes(archive({"a.txt": content}, method))
    container = open_container(str(tmp_path / "x.zip"))
    with container.open("a.txt") as file:
        assert file.readline() + file.readline() == b"0 \n1 x\n"
        for place in (3 << 20, 10, len(content) - 5, len(content) + 5, 0):
            assert file.seek(place) == min(place, len(content)), "as zipfile does"
            assert file.read(20) == content[place : place + 20]
        assert file.seek(-7, io.SEEK_END) == len(content) - 7
        assert file.read() == content[-7:]


def test_a_stream_of_a_damaged_member_fails_at_its_end_at_the_latest(tmp_path: Path) -> None:
    content = random.Random(0).randbytes(3 << 20)
    for method in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
        damaged = bytearray(archive({"a.bin": content}, method))
        damaged[1 << 20] ^= 1
        (tmp_path / "x.zip").write_bytes(damaged)
        with (
            open_container(str(tmp_path / "x.zip")).open("a.bin") as file,
            pytest.raises(zipfile.BadZipFile),
        ):
            file.read()
