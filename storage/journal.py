"""How far a dataset is, noted beside it: what an interrupted run has finished, a later one need not do again."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from storage.execute import Done
from storage.plan import Chunk
from storage.writers import Destination

if TYPE_CHECKING:
    import pandas as pd

_FOLDER = ".progress"
Columns = list[list[Any]]
"""Rows of the manifest, column by column in the order of `Done`."""


def columns_of(rows: Iterable[Done]) -> Columns:
    """Rows as columns."""
    return [list(column) for column in zip(*rows, strict=True)] or [[] for _ in Done._fields]


def manifest_of(parts: Iterable[Columns]) -> pd.DataFrame:
    """The manifest: the rows of all parts, sorted by part and path."""
    import pandas as pd

    names = Done._fields
    whole: Columns = [[] for _ in names]
    for part in parts:
        for column, more in zip(whole, part, strict=True):
            column += more
    order = sorted(range(len(whole[0])), key=lambda row: (whole[0][row], whole[1][row]))
    return pd.DataFrame(
        {name: [column[row] for row in order] for name, column in zip(names, whole, strict=True)}, columns=list(names)
    )


class Journal:
    """The notes of one run, in `.progress/<key>/` of the dataset; those of other content are not its own."""

    def __init__(self, destination: Destination, key: str) -> None:
        self.destination, self.folder = destination, f"{_FOLDER}/{key or 'once'}"

    def note(self, name: str, rows: Columns) -> None:
        """A chunk is done: keep its rows of the manifest."""
        self._write(f"done-{name}", rows)

    def plan(self, chunks: list[Chunk]) -> None:
        """What there is to do. A run without a plan starts from the beginning, so this comes after "declared"."""
        self._write("plan", chunks)

    def resume(self) -> tuple[dict[str, Columns], list[Chunk] | None]:
        """(finished chunks by name, all chunks) of an interrupted run, ({}, None) if there is none."""
        fs, folder = self.destination.fs, self.destination.path(self.folder)
        fs.invalidate_cache()
        if not fs.exists(f"{folder}/plan.json"):
            return {}, None
        chunks = [Chunk(*chunk) for chunk in json.loads(fs.cat_file(f"{folder}/plan.json"))]
        found = {}
        for path in fs.glob(f"{folder}/done-*.json"):
            name = path.rsplit("/done-", 1)[1].removesuffix(".json")
            found[name] = json.loads(fs.cat_file(path))
        return found, chunks

    def clear(self) -> None:
        """Remove all notes, other runs' too."""
        with contextlib.suppress(FileNotFoundError):
            self.destination.fs.rm(self.destination.path(_FOLDER), recursive=True)

    def _write(self, name: str, value: Any) -> None:
        self.destination.write(f"{self.folder}/{name}.json", [json.dumps(value).encode()])
