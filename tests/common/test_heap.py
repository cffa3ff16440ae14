"""Without glibc, memory is managed as the system does it."""

from __future__ import annotations

import ctypes
import platform
import resource
import subprocess
import sys
from typing import Any

import pytest

from common import heap


@pytest.mark.parametrize("other", ["no such library", "other functions"])
def test_another_c_library_is_left_as_it_is(other: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def load(name: str) -> Any:
        if other == "no such library":
            raise OSError(f"{name}: cannot open shared object file")
        return object()

    monkeypatch.setattr(ctypes, "CDLL", load)
    heap.retain_freed_memory()
    heap.release_freed_memory()


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="another C library")
def test_a_thread_gets_the_memory_back_that_it_freed() -> None:
    pages = {}
    for retained in (False, True):
        answer = subprocess.run(
            [sys.executable, "-c", _THREAD, str(retained)], capture_output=True, text=True, check=True
        )
        pages[retained] = int(answer.stdout)
    assert pages[False] > _BLOCKS * _BLOCK / resource.getpagesize() / 2, "by default, new pages are given"
    assert pages[True] < pages[False] / 10


_BLOCKS, _BLOCK = 20, 2_500_000
_THREAD = f"""
import resource, sys, threading
from common import heap

if sys.argv[1] == "True":
    heap.retain_freed_memory()


def use():
    for _ in range(3):
        before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
        blocks = [b"x" * {_BLOCK} for _ in range({_BLOCKS})]
        del blocks
    print(resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before)


thread = threading.Thread(target=use)
thread.start()
thread.join()
"""
