"""Without glibc, memory is managed as the system does it."""

from __future__ import annotations

import ctypes
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
