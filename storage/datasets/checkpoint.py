"""How far a dataset is, noted beside it: what an interrupted run has finished, a later one need not do again."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterable
from typing import Any, NamedTuple

from storage.datasets.manifest import Columns
from storage.datasets.plan import Chunk
from storage.writers import Destination

_FOLDER = ".progress"
DRAFTS = f"{_FOLDER}/drafts"
"""Where files of a dataset that are being written lie."""


class Size(NamedTuple):
    """How much a chunk is."""

    files: int
    bytes: int


class Journal:
    """The notes of one run, in `.progress/<key>/` of the dataset; those of other content are not its own."""

    def __init__(self, destination: Destination, key: str) -> None:
        self.destination, self.folder = destination, f"{_FOLDER}/{key or 'once'}"

    def note(self, name: str, rows: Columns) -> None:
        """A chunk is done: keep its rows of the manifest."""
        self._write(f"done-{name}", rows)

    def plan(self, chunks: Iterable[Chunk]) -> None:
        """What there is to do. A run without a plan starts from the beginning, so this comes after "declared"."""
        sizes = []
        for number, chunk in enumerate(chunks):
            self._write(f"todo-{number}", chunk.task)
            sizes.append(Size(chunk.files, chunk.bytes))
        self._write("sizes", sizes)

    def todo(self, number: int) -> list[Any]:
        """The packed task of a chunk."""
        task: list[Any] = self._read(f"todo-{number}")
        return task

    def resume(self) -> tuple[dict[str, Columns], list[Size] | None]:
        """(finished chunks by name, sizes of all chunks) of an interrupted run, ({}, None) if there is none."""
        fs, folder = self.destination.fs, self.destination.path(self.folder)
        fs.invalidate_cache()
        if not fs.exists(f"{folder}/sizes.json"):
            return {}, None
        names = [path.rsplit("/", 1)[1].removesuffix(".json") for path in fs.glob(f"{folder}/done-*.json")]
        done = {name.removeprefix("done-"): self._read(name) for name in names}
        return done, [Size(*size) for size in self._read("sizes")]

    def clear(self) -> None:
        """Remove all notes, other runs' too."""
        with contextlib.suppress(FileNotFoundError):
            self.destination.fs.rm(self.destination.path(_FOLDER), recursive=True)

    def _read(self, name: str) -> Any:
        return json.loads(self.destination.fs.cat_file(self.destination.path(f"{self.folder}/{name}.json")))

    def _write(self, name: str, value: Any) -> None:
        self.destination.write(f"{self.folder}/{name}.json", [json.dumps(value).encode()])
