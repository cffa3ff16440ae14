"""Stores as tests use them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from storage.store import Store as AnyStore


class Store(AnyStore):
    """A store in a local directory, in which a record that is read is known to exist."""

    def local(self, *parts: str | int) -> Path:
        path = super().local(*parts)
        assert path is not None
        return path

    def read_json(self, url: str) -> Any:
        return super().read_json(url)
