"""Checkpoint of a dataset: finished chunks, so that an interrupted run resumes."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterable
from typing import Any, NamedTuple

from storage.datasets.manifest import Columns
from storage.datasets.plan import Chunk
from storage.writers import Destination

FOLDER = ".progress"
DRAFTS = f"{FOLDER}/drafts"
"""Folder for the temporary files of a dataset."""


class Size(NamedTuple):
    """Number of files and of bytes in a chunk."""

    files: int
    bytes: int


class Checkpoint:
    """The plan and the finished chunks of one run, in `.progress/<key>/` of the dataset."""

    def __init__(self, destination: Destination, key: str) -> None:
        self.destination, self.folder = destination, f"{FOLDER}/{key or 'once'}"

    def save_rows(self, name: str, rows: Columns) -> None:
        """Save the manifest rows of a finished chunk."""
        self._write(f"done-{name}", rows)

    def save_plan(self, chunks: Iterable[Chunk]) -> None:
        """Save the plan. A run without a plan starts from the beginning, so save the rows of "declared" first."""
        sizes = []
        for number, chunk in enumerate(chunks):
            self._write(f"todo-{number}", chunk.task)
            sizes.append(Size(chunk.files, chunk.bytes))
        self._write("sizes", sizes)

    def load_task(self, number: int) -> list[Any]:
        """The packed task of a chunk."""
        task: list[Any] = self._read(f"todo-{number}")
        return task

    def load(self) -> tuple[dict[str, Columns], list[Size] | None]:
        """(rows of finished chunks by name, sizes of all chunks) of an interrupted run, or ({}, None)."""
        fs, folder = self.destination.fs, self.destination.path(self.folder)
        fs.invalidate_cache()
        if not fs.exists(f"{folder}/sizes.json"):
            return {}, None
        names = [path.rsplit("/", 1)[1].removesuffix(".json") for path in fs.glob(f"{folder}/done-*.json")]
        done = {name.removeprefix("done-"): self._read(name) for name in names}
        return done, [Size(*size) for size in self._read("sizes")]

    def clear(self) -> None:
        """Remove the checkpoints of all runs of this dataset."""
        with contextlib.suppress(FileNotFoundError):
            self.destination.fs.rm(self.destination.path(FOLDER), recursive=True)

    def _read(self, name: str) -> Any:
        return json.loads(self.destination.fs.cat_file(self.destination.path(f"{self.folder}/{name}.json")))

    def _write(self, name: str, value: Any) -> None:
        self.destination.write(f"{self.folder}/{name}.json", [json.dumps(value).encode()])
