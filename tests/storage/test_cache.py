"""Local copies: made once, verified, the longest unused removed first, never one that is in use."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from storage.cache import Cache, CacheFull

ROOT = Path(__file__).parents[2]
USE = """
import sys
from pathlib import Path
from storage.cache import Cache
def fill(folder):
    (folder / "file").write_text("content")
with Cache(Path(sys.argv[1]), 100).use("a", "a", 60, fill, float(sys.argv[2])):
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


@pytest.mark.parametrize(("promised", "kept"), [(0, False), (3600, True)])
def test_a_killed_user_counts_for_as_long_as_was_promised(cache: Cache, promised: int, kept: bool) -> None:
    process = subprocess.Popen(
        [sys.executable, "-c", USE, str(cache.folder), str(promised)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        cwd=ROOT,
    )
    with process:
        assert process.stdout is not None
        assert process.stdout.readline() == "used\n"
        assert not cache.remove("a"), "in use by a living process"
        process.kill()
    assert cache.remove("a") is not kept


def test_a_disk_without_room_is_said_before_anything_is_copied(cache: Cache) -> None:
    with (
        pytest.raises(CacheFull, match="MLEBENCH_SCRATCH"),
        Cache(cache.folder, 1 << 60).use("a", "a", 1 << 59, fill_not),
    ):
        pass
