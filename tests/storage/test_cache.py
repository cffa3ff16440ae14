"""Local copies: made once, verified, the longest unused removed first, never one that is in use."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path

import pytest

import storage.cache as cache_module
from common import processes
from common.errors import UserError
from storage import uses
from storage.cache import Cache

ROOT = Path(__file__).parents[2]
USE = """
import sys
from pathlib import Path
from storage.cache import Cache
from storage.uses import Continuing
def fill(folder):
    (folder / "file").write_text("content")
continuing = Continuing(Path(sys.argv[2]), float(sys.argv[3])) if len(sys.argv) > 2 else None
with Cache(Path(sys.argv[1]), 100).use("a", "a", 60, fill, continuing=continuing):
    print("used", flush=True)
    sys.stdin.read()
"""


def filler(content: str = "content") -> Callable[[Path], None]:
    def fill(folder: Path) -> None:
        (folder / "file").write_text(content)

    return fill


def fill_not(_folder: Path) -> None:
    raise AssertionError("it is there already")


@pytest.fixture
def cache(tmp_path: Path) -> Cache:
    return Cache(tmp_path / "cache", limit=100)


def digests(cache: Cache) -> list[str]:
    return [entry.digest for entry in cache.entries()]


def put(cache: Cache, digest: str, size: int = 40, used: int = 0) -> None:
    with cache.use(digest, digest, size, filler()):
        pass
    os.utime(cache.folder / f"{digest}.json", (used, used))


def test_a_copy_is_made_once(cache: Cache) -> None:
    with cache.use("a", "label", 40, filler()) as folder:
        assert (folder / "file").read_text() == "content"
    with cache.use("a", "label", 40, fill_not) as folder:
        assert (folder / "file").read_text() == "content"


def test_the_longest_unused_goes_first(cache: Cache) -> None:
    put(cache, "a", used=1)
    put(cache, "b", used=2)
    with cache.use("a", "a", 40, fill_not):
        pass
    put(cache, "c", used=3)
    assert sorted(digests(cache)) == ["a", "c"]
    assert not (cache.folder / "b").exists()


def test_what_is_in_use_stays_even_beyond_the_limit(cache: Cache) -> None:
    with cache.use("a", "a", 80, filler()) as folder:
        put(cache, "b", 80)
        assert not cache.remove("a")
        assert (folder / "file").exists()
    put(cache, "c", 80)
    assert digests(cache) == ["c"]


def test_who_can_wait_does_so_until_the_copy_is_within_the_limit(cache: Cache) -> None:
    heard: list[str] = []
    with ExitStack() as users:
        users.enter_context(cache.use("a", "a", 60, filler()))

        def waits(reason: str) -> None:
            heard.append(reason)
            assert (cache.folder / "a").exists()
            users.close()

        with cache.use("b", "b", 60, filler(), within_limit=True, on_wait=waits):
            assert digests(cache) == ["b"]
    assert len(heard) == 1
    assert "MLEBENCH_CACHE_LIMIT" in heard[0]


def test_a_copy_larger_than_the_limit_waits_for_the_others_only(cache: Cache) -> None:
    put(cache, "a")
    with cache.use("b", "b", 1_000, filler(), within_limit=True, on_wait=pytest.fail):
        assert digests(cache) == ["b"]


def test_many_that_together_exceed_the_limit_never_do_and_all_have_their_turn(cache: Cache) -> None:
    most: list[int] = []

    def want(name: str) -> None:
        own = Cache(cache.folder, cache.limit)
        with own.use(name, name, 40, filler(), within_limit=True):
            most.append(sum(entry.bytes for entry in own.entries() if entry.complete))

    threads = [threading.Thread(target=want, args=(name,)) for name in "abcde"]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert len(most) == 5
    assert max(most) <= cache.limit


def test_a_failed_copy_is_not_complete_and_goes_on(cache: Cache) -> None:
    def breaks(folder: Path) -> None:
        (folder / "first").touch()
        raise RuntimeError("no more")

    with pytest.raises(RuntimeError), cache.use("a", "a", 40, breaks):
        pass
    assert [entry.complete for entry in cache.entries()] == [False]

    def goes_on(folder: Path) -> None:
        assert (folder / "first").exists()

    with cache.use("a", "a", 40, goes_on):
        assert [entry.complete for entry in cache.entries()] == [True]


def test_two_that_want_the_same_make_it_once(cache: Cache) -> None:
    made, go = [], threading.Event()

    def slow(folder: Path) -> None:
        made.append(folder)
        go.wait(30)

    def want() -> None:
        with Cache(cache.folder, 100).use("a", "a", 40, slow):
            pass

    threads = [threading.Thread(target=want) for _ in range(3)]
    for thread in threads:
        thread.start()
    go.set()
    for thread in threads:
        thread.join()
    assert len(made) == 1


def killed_while_using(*arguments: object) -> None:
    """Another process uses "a" of a cache, and is killed."""
    command = [sys.executable, "-c", USE, *map(str, arguments)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=ROOT) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "used\n"
        assert not Cache(Path(str(arguments[0])), 100).remove("a"), "in use by a living process"
        process.kill()


def test_the_use_of_a_killed_process_ends_with_it(cache: Cache) -> None:
    killed_while_using(cache.folder)
    assert cache.remove("a")


def test_a_run_that_goes_on_keeps_its_copy_until_its_work_directory_is_gone(cache: Cache, tmp_path: Path) -> None:
    workdir = tmp_path / "run"
    workdir.mkdir()
    killed_while_using(cache.folder, workdir, 3600)
    assert not cache.remove("a")
    workdir.rmdir()
    assert cache.remove("a")


def test_a_run_that_goes_on_keeps_its_copy_no_longer_than_it_takes(cache: Cache, tmp_path: Path) -> None:
    killed_while_using(cache.folder, tmp_path, 0)
    assert cache.remove("a")


def test_nothing_goes_on_after_the_machine_was_restarted(
    cache: Cache, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    killed_while_using(cache.folder, tmp_path, 3600)
    monkeypatch.setattr(uses, "boot_id", lambda: "after the restart")
    assert uses.in_use(cache.folder / "a.uses", shared=True), "it may be another machine's"
    assert cache.remove("a")


def test_a_process_in_another_container_is_a_user(cache: Cache, monkeypatch: pytest.MonkeyPatch) -> None:
    with cache.use("a", "a", 40, filler()):
        monkeypatch.setattr(processes, "_machine", lambda: "another namespace of process ids")
        assert not cache.remove("a")
    assert cache.remove("a")


@pytest.fixture
def disk(cache: Cache, monkeypatch: pytest.MonkeyPatch) -> None:
    """A disk of 100 bytes for the cache, which itself has no limit."""
    cache.limit = 1 << 40

    def free(folder: Path) -> int:
        return 100 - sum(path.stat().st_size for path in folder.glob("*/*") if path.suffix != ".json")

    monkeypatch.setattr(cache_module, "_free", free)


def bytes_of(count: int, name: str = "file") -> Callable[[Path], None]:
    def fill(folder: Path) -> None:
        (folder / name).write_bytes(b"x" * count)

    return fill


@pytest.mark.usefixtures("disk")
def test_a_resumed_copy_needs_room_for_the_rest_only(cache: Cache) -> None:
    def breaks(folder: Path) -> None:
        bytes_of(60)(folder)
        bytes_of(20, ".more.1.partial")(folder)
        raise RuntimeError("killed")

    with pytest.raises(RuntimeError), cache.use("a", "a", 90, breaks):
        pass
    with cache.use("a", "a", 90, bytes_of(30, "more")) as folder:  # only 20 bytes are free, 40 without the partial file
        assert sorted(path.name for path in folder.iterdir()) == ["file", "more"]


@pytest.mark.usefixtures("disk")
def test_who_finds_no_room_waits_for_the_end_of_a_use(cache: Cache) -> None:
    heard: list[str] = []
    with ExitStack() as users:
        users.enter_context(cache.use("a", "a", 60, bytes_of(60)))

        def waits(reason: str) -> None:
            heard.append(reason)
            assert (cache.folder / "a").exists()
            users.close()

        with cache.use("b", "b", 60, bytes_of(60), on_wait=waits):
            assert not (cache.folder / "a").exists()
    assert len(heard) == 1
    assert "space" in heard[0]


@pytest.mark.usefixtures("disk")
def test_copies_that_are_made_at_the_same_time_do_not_take_the_same_room(cache: Cache) -> None:
    begun, go_on, waits = threading.Event(), threading.Event(), threading.Event()

    def slow(folder: Path) -> None:
        begun.set()
        assert go_on.wait(60)
        bytes_of(60)(folder)

    def first() -> None:
        with Cache(cache.folder, cache.limit).use("a", "a", 60, slow):
            pass

    def waiting(_reason: str) -> None:
        waits.set()
        go_on.set()

    thread = threading.Thread(target=first)
    thread.start()
    assert begun.wait(60)
    with cache.use("b", "b", 60, bytes_of(60), on_wait=waiting):  # the disk is still empty, and all but 40 is promised
        assert waits.is_set()
        assert digests(cache) == ["b"], "the first went when it was made and not in use any more"
    thread.join()


@pytest.mark.usefixtures("disk")
def test_two_that_were_interrupted_do_not_wait_for_each_others_half(cache: Cache) -> None:
    def breaks(folder: Path) -> None:
        bytes_of(40)(folder)
        raise RuntimeError("killed")

    for name in ("a", "b"):
        with pytest.raises(RuntimeError), cache.use(name, name, 40, breaks):
            pass

    def want(name: str) -> None:
        with Cache(cache.folder, cache.limit).use(name, name, 80, bytes_of(40, "rest")):
            pass

    threads = [threading.Thread(target=want, args=(name,)) for name in ("a", "b")]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert not any(thread.is_alive() for thread in threads)


@pytest.mark.usefixtures("disk")
def test_what_no_end_of_a_use_could_make_room_for_is_refused_at_once(cache: Cache) -> None:
    with (
        cache.use("a", "a", 60, bytes_of(60)),
        pytest.raises(UserError, match="make room"),
        cache.use("b", "b", 101, fill_not),
    ):
        pass
    with (
        cache.use("a", "a", 60, fill_not),
        pytest.raises(UserError, match="make room"),
        Cache(cache.folder, cache.limit, patience=0).use("b", "b", 60, fill_not),
    ):
        pass


def test_a_disk_without_room_is_said_before_anything_is_copied(cache: Cache) -> None:
    with (
        pytest.raises(UserError, match="MLEBENCH_SCRATCH"),
        Cache(cache.folder, 1 << 60).use("a", "a", 1 << 59, fill_not),
    ):
        pass
