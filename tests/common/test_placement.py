"""Folders that are created apart from each other on the disk."""

from __future__ import annotations

import errno
import os
import struct
import sys
import threading
from pathlib import Path
from types import SimpleNamespace

import pytest

from common import placement
from common.placement import _GET, _SET, _TOP, Births, make_apart


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
    with pytest.raises(FileExistsError):
        make_apart(str(tmp_path / "train"), str(tmp_path))
    assert [path.name for path in tmp_path.iterdir()] == ["train"]


def test_folders_are_created_with_those_above(tmp_path: Path) -> None:
    births = Births(str(tmp_path))
    for _ in range(2):
        births.folder(str(tmp_path / "train" / "cats" / "small"))
    assert [path.relative_to(tmp_path).as_posix() for path in sorted(tmp_path.rglob("*"))] == [
        "train",
        "train/cats",
        "train/cats/small",
    ]


def test_a_folder_that_cannot_be_created_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    for name in ("file", "file/cats", "file/cats/small"):
        with pytest.raises(FileExistsError):
            Births().folder(str(tmp_path / name))
    for nowhere in ("/proc/nowhere", "/proc/nowhere/cats", ""):
        with pytest.raises(OSError, match=r"No such file|Read-only|not permitted|denied"):
            Births().folder(nowhere)
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


def test_a_folder_that_exists_needs_no_right_to_create_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a folder that exists, some systems say first that nothing can be created there."""

    def refused(path: str) -> None:
        raise OSError(errno.EROFS, os.strerror(errno.EROFS), path)

    monkeypatch.setattr(placement.os, "mkdir", refused)
    Births().folder(str(tmp_path))
    with pytest.raises(OSError, match="Read-only"):
        Births().folder(str(tmp_path / "train"))


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


def create(births: Births, root: Path, folders: int = 40) -> None:
    for number in range(folders):
        births.folder(f"{root}/train/{number}/pictures")
        for name in "ab":
            assert births.file(f"{root}/train/{number}/pictures/{name}", f"{number}{name}".encode())
        assert births.file(f"{root}/train/{number}.txt", b"")


def content(root: Path) -> dict[str, bytes]:
    return {path.relative_to(root).as_posix(): path.read_bytes() for path in root.rglob("*") if path.is_file()}


@pytest.mark.parametrize("slow", [100.0, -1.0])  # none, and all of them
@pytest.mark.parametrize("renames", [True, False])
def test_what_is_born_is_in_its_place(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, slow: float, renames: bool
) -> None:
    monkeypatch.setattr(placement, "_SLOW", slow)
    monkeypatch.setattr(placement, "_SOON", 0)  # the new place counts as better, however soon it is left
    if not renames:
        monkeypatch.setattr(placement, "_renameat2", lambda: None)
    nursery, root = tmp_path / "nursery", tmp_path / "root"
    nursery.mkdir()
    births = Births(str(nursery))
    create(births, root)
    plain = Births()
    create(plain, tmp_path / "plain")
    assert content(root) == content(tmp_path / "plain")
    assert len(list(nursery.iterdir())) > 10 if slow < 0 else not list(nursery.iterdir())
    assert not content(nursery)


class Disk:
    """A clock by which each creation of a file or folder takes so long."""

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        self._now = 0.0

    def perf_counter(self) -> float:
        self._now += self.seconds
        return self._now


def births_in(folder: Path) -> int:
    return len(list(folder.glob("births-*")))


def test_a_disk_that_is_slow_everywhere_is_taken_as_it_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(placement, "time", Disk(2 * placement._SLOWEST))
    births = Births(str(tmp_path))
    create(births, tmp_path / "root", 200)
    tries = births_in(tmp_path)
    assert 0 < tries < 40
    create(births, tmp_path / "more", 1_000)
    assert births_in(tmp_path) == tries


@pytest.mark.parametrize("times", [1.5, 3, 12])
def test_on_a_disk_that_is_evenly_slow_most_files_are_created_in_place(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, times: float
) -> None:
    """Moving them would take longer than it saves. A better place is looked for again, but less and less often."""
    monkeypatch.setattr(placement, "time", Disk(times * placement._SLOW))
    births, root = Births(str(tmp_path)), tmp_path / "root"
    births.folder(str(root))
    opened: list[str] = []
    real = os.open

    def noted(path: str, *rest: int) -> int:
        opened.append(os.fspath(path))
        return real(path, *rest)

    monkeypatch.setattr(placement.os, "open", noted)
    tried = []
    for number in range(4 * placement._MANY):
        births.file(f"{root}/{number}", b"")
        tried.append(births_in(tmp_path) if number % 500 == 499 else 0)
    in_place = sum(path.startswith(f"{root}/") for path in opened)
    assert in_place > 0.85 * 4 * placement._MANY
    first, then, after, *_, last = filter(None, tried)
    assert first == then < after <= last < 4 * first


@pytest.mark.skipif(sys.platform != "linux", reason="places are ext4's")
def test_a_slow_place_is_left(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The first creations are slow, the others are not."""
    times = iter(range(10**9))

    def clock() -> float:
        tick = next(times)
        return float(tick) if tick < 2 * placement._PATIENCE else 0.0

    monkeypatch.setattr(placement, "time", SimpleNamespace(perf_counter=clock))
    opened: list[str] = []
    births = Births(str(tmp_path))
    births.folder(str(tmp_path / "train"))
    real = os.open

    def noted(path: str, *rest: int) -> int:
        opened.append(os.fspath(path))
        return real(path, *rest)

    monkeypatch.setattr(placement.os, "open", noted)
    for number in range(30):
        assert births.file(f"{tmp_path}/train/{number}", b"x")
    (elsewhere,) = tmp_path.glob("births-*")
    own = [path for path in opened if path.startswith(f"{tmp_path}/train/")]
    moved = [path for path in opened if path.startswith(f"{elsewhere}/")]
    assert len(own) == placement._PATIENCE - 1  # the first of the slow ones was the folder
    assert len(own) + len(moved) == 30
    births.folder(str(tmp_path / "train/below"))
    assert births.file(f"{tmp_path}/train/below/file", b"x")
    assert opened[-1] == f"{tmp_path}/train/below/file", "its folder was born elsewhere, where files are quick as well"
    births.folder(str(tmp_path / "train/below/deeper"))
    assert births.file(f"{tmp_path}/train/below/deeper/file", b"x")
    assert opened[-1] == f"{tmp_path}/train/below/deeper/file", "so was the folder below it"


def test_folders_of_several_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Half of them create in place. None finds a folder gone in which it is about to create a file."""
    monkeypatch.setattr(placement, "_SOON", 0)
    start = threading.Barrier(6)
    failed: list[BaseException] = []

    def work(number: int) -> None:
        births = Births(str(tmp_path) if number % 2 else None)
        births._slow = placement._PATIENCE
        births._note(100.0)
        start.wait()
        try:
            for each in range(200):
                births.folder(f"{tmp_path}/train/{each}/below")
                assert births.file(f"{tmp_path}/train/{each}/below/{number}", b"x")
        except BaseException as error:
            failed.append(error)

    threads = [threading.Thread(target=work, args=[number]) for number in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failed
    assert len(content(tmp_path / "train")) == 6 * 200


def test_a_file_that_exists_is_kept_in_place_or_replaced(tmp_path: Path) -> None:
    births = Births(str(tmp_path))
    (tmp_path / "file").write_bytes(b"old")
    with pytest.raises(FileExistsError):
        births.file(f"{tmp_path}/file", b"new")
    assert (tmp_path / "file").read_bytes() == b"old"
    births._slow = placement._PATIENCE
    births._note(100.0)
    assert births.file(f"{tmp_path}/file", b"new")
    assert (tmp_path / "file").read_bytes() == b"new"
