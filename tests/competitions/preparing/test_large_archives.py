"""Members of any size: 7z and compressed tar are streamed, plain tar is scanned once, remote files are read ahead."""

from __future__ import annotations

import io
import random
import subprocess
import sys
import tarfile
import tempfile
import threading
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import py7zr
import pytest

from competitions.errors import DownloadError
from competitions.preparing.archives import containers, nested
from competitions.preparing.archives.containers import TarContainer, open_container
from competitions.preparing.archives.readahead import ReadAhead

pytestmark = pytest.mark.slow

FILES = {f"folder/{number}.bin": bytes([number]) * (700_000 * number) for number in range(6)}


@pytest.fixture
def seven_zip(tmp_path: Path) -> str:
    with py7zr.SevenZipFile(tmp_path / "x.7z", "w") as archive:
        for name, content in FILES.items():
            archive.writestr(content, name)
    return str(tmp_path / "x.7z")


@pytest.fixture
def tar(tmp_path: Path) -> str:
    return write_tar(tmp_path / "x.tar", "w")


@pytest.fixture
def tar_gz(tmp_path: Path) -> str:
    return write_tar(tmp_path / "x.tar.gz", "w:gz")


def write_tar(path: Path, mode: Any) -> str:
    with tarfile.open(path, mode) as archive:
        for name, content in FILES.items():
            info = tarfile.TarInfo(name)
            info.size = len(content)
            archive.addfile(info, io.BytesIO(content))
    return str(path)


@pytest.mark.parametrize("kind", ["seven_zip", "tar", "tar_gz"])
class TestEveryKind:
    @pytest.fixture
    def container(self, kind: str, request: pytest.FixtureRequest) -> Any:
        return open_container(request.getfixturevalue(kind))

    def test_members_are_streamed(self, container: Any) -> None:
        assert {name: file.read() for name, file in container.stream(FILES)} == FILES

    def test_what_is_not_read_is_skipped(self, container: Any) -> None:
        wanted = {"folder/1.bin", "folder/3.bin", "folder/5.bin"}
        found = {name: file.read(10) if name != "folder/3.bin" else b"" for name, file in container.stream(wanted)}
        assert found == {"folder/1.bin": b"\1" * 10, "folder/3.bin": b"", "folder/5.bin": b"\5" * 10}

    def test_a_reader_may_stop(self, container: Any) -> None:
        members = container.stream(FILES)
        next(members)
        members.close()
        assert not [thread for thread in threading.enumerate() if thread.name == "7z"]

    @pytest.mark.parametrize("in_memory", [0, 64 << 20])
    def test_members_are_opened(self, container: Any, in_memory: int, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(containers, "IN_MEMORY", in_memory)
        for name, content in FILES.items():
            with container.open(name) as file:
                assert file.read(3) == content[:3]
                assert file.read() == content[3:]
        assert not [thread for thread in threading.enumerate() if thread.name == "7z"]


def test_7z_uses_no_scratch_files(seven_zip: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(*_: object, **__: object) -> None:
        raise AssertionError("a scratch file")

    for name in ("TemporaryDirectory", "TemporaryFile", "NamedTemporaryFile"):
        monkeypatch.setattr(tempfile, name, refused)
    container = open_container(seven_zip)
    assert {name: file.read() for name, file in container.stream(FILES)} == FILES


@pytest.mark.parametrize("in_memory", [-1, 64 << 20])
@pytest.mark.parametrize("size", [0, 1, 4096, (1 << 20) - 1, 1 << 20, (1 << 20) + 1, (3 << 20) + 8192])
def test_a_scratch_file_has_every_byte(
    size: int, in_memory: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(nested, "IN_MEMORY", in_memory)
    content = random.Random(size).randbytes(size)
    with zipfile.ZipFile(tmp_path / "x.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("a", content)
    opened = nested.seekable(open_container(str(tmp_path / "x.zip")), "a")
    for _ in range(2):
        with opened() as file:
            assert file.read() == content


@pytest.mark.skipif(sys.platform != "linux", reason="streams share their position elsewhere")
@pytest.mark.parametrize("in_memory", [-1, 64 << 20])
def test_two_streams_of_a_scratch_file_at_once(in_memory: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(nested, "IN_MEMORY", in_memory)
    content = random.Random(1).randbytes(3 << 20)
    with zipfile.ZipFile(tmp_path / "x.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("a", content)
    opened = nested.seekable(open_container(str(tmp_path / "x.zip")), "a")
    with opened() as one, opened() as other:
        assert other.seek(2 << 20) == 2 << 20
        assert one.read(1 << 20) + one.read(1 << 20) + other.read() == content


def test_a_damaged_file_is_no_scratch_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(nested, "IN_MEMORY", -1)
    with zipfile.ZipFile(tmp_path / "x.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("a", random.Random(0).randbytes(3 << 20))
    damaged = bytearray((tmp_path / "x.zip").read_bytes())
    damaged[2 << 20] ^= 1
    (tmp_path / "x.zip").write_bytes(damaged)
    with pytest.raises(zipfile.BadZipFile):
        nested.seekable(open_container(str(tmp_path / "x.zip")), "a")


def test_a_damaged_7z_is_an_error_where_it_is_read(seven_zip: str) -> None:
    content = bytearray(Path(seven_zip).read_bytes())
    content[60:80] = bytes(20)
    Path(seven_zip).write_bytes(content)
    container = open_container(seven_zip)
    with pytest.raises(DownloadError, match="is not a complete 7z archive"):
        [file.read() for _, file in container.stream(FILES)]


_LARGE_MEMBER = """
import resource, sys
from competitions.preparing.archives.containers import open_container
container = open_container(sys.argv[1])
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
size = 0
with container.open("large") as file:
    while piece := file.read(1 << 20):
        size += len(piece)
print(size, (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) >> 10)
"""


@pytest.mark.parametrize(
    ("suffix", "method", "mib", "bound"),
    [
        ("7z", py7zr.FILTER_COPY, 256, 60),
        ("7z", py7zr.FILTER_ZSTD, 768, 400),  # py7zr asks for 128 MB at a time
        ("tar.gz", None, 128, 40),
    ],
)
def test_a_large_member_is_not_held_in_memory(tmp_path: Path, suffix: str, method: Any, mib: int, bound: int) -> None:
    size, path = mib << 20, tmp_path / f"x.{suffix}"
    with (tmp_path / "large").open("wb") as file:
        file.truncate(size)
    if suffix == "7z":
        with py7zr.SevenZipFile(path, "w", filters=[{"id": method}]) as archive:
            archive.write(tmp_path / "large", "large")
    else:
        with tarfile.open(path, "w:gz", compresslevel=1) as archive:
            archive.add(tmp_path / "large", "large")
    command = [sys.executable, "-c", _LARGE_MEMBER, str(path)]
    read, grown = map(int, subprocess.run(command, capture_output=True, text=True, check=True).stdout.split())
    assert read == size
    assert grown < bound


class Counting:
    """Opens a file, and counts how often and how many bytes of it are read."""

    def __init__(self, path: str) -> None:
        self.path, self.opened, self.read = path, 0, 0

    def __call__(self) -> Any:
        self.opened += 1
        counter = self

        class File(io.FileIO):
            def readinto(self, buffer: Any) -> int:
                count = super().readinto(buffer) or 0
                counter.read += count
                return count

            def read(self, size: int | None = -1) -> bytes:
                data = super().read(-1 if size is None else size) or b""
                counter.read += len(data)
                return data

        return File(self.path)


def test_a_tar_is_scanned_once_for_all_chunks(tar: str) -> None:
    opener = Counting(tar)
    container = TarContainer(opener, tar)
    assert container.sizes == {name: len(content) for name, content in FILES.items()}
    scanned = opener.read
    for name, content in FILES.items():  # as chunks do
        assert {each: file.read() for each, file in container.stream([name])} == {name: content}
    assert opener.opened == 2, "for the scan, and for all members"
    assert opener.read - scanned == sum(map(len, FILES.values())), "nothing but the members"


def test_a_scan_keeps_no_objects_of_members(tmp_path: Path) -> None:
    seen: list[int] = []
    with tarfile.open(write_tar(tmp_path / "x.tar", "w")) as archive:
        for _ in containers._members(archive):
            seen.append(len(archive.members))  # type: ignore[attr-defined]  # what it keeps
    assert max(seen) == 0


def test_sparse_members_of_a_tar_are_whole(tmp_path: Path) -> None:
    with (tmp_path / "hole").open("wb") as file:
        file.truncate(1 << 20)
        file.seek(1 << 19)
        file.write(b"x" * 5000)
    subprocess.run(["tar", "--sparse", "--format=gnu", "-cf", "x.tar", "hole"], cwd=tmp_path, check=True)
    container = open_container(str(tmp_path / "x.tar"))
    with container.open("hole") as member:
        assert member.read() == (tmp_path / "hole").read_bytes()


class TestReadingAhead:
    SIZE, BLOCK = 1000, 10

    @pytest.fixture
    def fetched(self) -> list[int]:
        return []

    @pytest.fixture
    def cache(self, fetched: list[int]) -> Iterator[ReadAhead]:
        def fetch(start: int, stop: int) -> bytes:
            fetched.append(start)
            return bytes(number % 251 for number in range(start, stop))

        cache = ReadAhead(self.BLOCK, fetch, self.SIZE)
        yield cache
        cache.close()

    def test_any_range_has_its_bytes_and_no_block_is_fetched_twice_in_order(
        self, cache: ReadAhead, fetched: list[int]
    ) -> None:
        content = bytes(number % 251 for number in range(self.SIZE))
        position = 0
        for step in (1, 9, 10, 11, 35, 2) * 20:
            assert cache._fetch(position, position + step) == content[position : position + step]
            position += step
        assert len(fetched) == len(set(fetched)) == self.SIZE // self.BLOCK
        assert cache._fetch(995, 2000) == content[995:]
        assert cache._fetch(2000, 3000) == b""

    def test_a_single_place_costs_its_block(self, cache: ReadAhead, fetched: list[int]) -> None:
        for place in (500, 20, 800, 333):
            cache._fetch(place, place + 3)
        assert sorted(fetched) == [20, 330, 500, 800]

    def test_the_blocks_in_memory_are_bounded(self, cache: ReadAhead) -> None:
        cache._fetch(0, self.SIZE)
        assert len(cache._blocks) <= 16
        assert len(cache._in_order) <= 16

    def test_an_error_is_raised_and_not_remembered(self) -> None:
        answers: list[Any] = [OSError("away"), b"x" * 10]

        def fetch(start: int, stop: int) -> bytes:
            answer = answers.pop(0)
            if isinstance(answer, Exception):
                raise answer
            content: bytes = answer
            return content

        cache = ReadAhead(10, fetch, 10)
        with pytest.raises(OSError, match="away"):
            cache._fetch(0, 10)
        assert cache._fetch(0, 10) == b"x" * 10
        cache.close()
