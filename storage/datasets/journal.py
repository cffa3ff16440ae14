"""Journal of a preparation: its plan and the finished chunks, so that an interrupted one is resumed."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, NamedTuple

from common import plain_json
from storage.datasets.manifest import Columns, table_of
from storage.datasets.plan import Chunk
from storage.writers import Destination, StoreError

if TYPE_CHECKING:
    import pyarrow as pa

FOLDER = ".progress"
DRAFTS = f"{FOLDER}/drafts"
"""Folder for the temporary files of a dataset."""


class Size(NamedTuple):
    """Number of files and of bytes in a chunk."""

    files: int
    bytes: int


class Journal:
    """The plan and the finished chunks of one preparation, in `.progress/<key>/` of the dataset.

    With a key, a preparation can be resumed, also after a loss of power: files that the journal lists are on the disk.
    Without a key, the preparation starts again.
    """

    def __init__(self, destination: Destination, key: str) -> None:
        self.destination, self.folder, self._durable = destination, f"{FOLDER}/{key or 'once'}", bool(key)

    def save_rows(self, name: str, rows: Columns) -> None:
        """Save the manifest rows of a finished chunk. Called on the host that has written its files."""
        self._sync()
        self._write(f"done-{name}", rows)

    def save_plan(self, chunks: Iterable[Chunk]) -> None:
        """Save the plan. The rows of "declared" must be saved before, because a preparation with a plan is resumed."""
        sizes = []
        for number, chunk in enumerate(chunks):
            self._write(f"todo-{number}", chunk.task)
            sizes.append(Size(chunk.files, chunk.bytes))
        self._sync()
        self._write("sizes", sizes)

    def save_left_out(self, counts: list[dict[str, Any]]) -> None:
        """Save the counts for the commit marker."""
        self._write("left-out", counts)

    def load_left_out(self) -> list[dict[str, Any]]:
        """The counts for the commit marker; none if none were saved."""
        return self._read("left-out", list) or []

    def load_task(self, number: int) -> list[Any]:
        """The packed task of a chunk.

        Raises `StoreError` if it cannot be read. The plan is then removed, and the next try makes it again.
        """
        task = self._read(f"todo-{number}", list)
        if task is None:
            with contextlib.suppress(FileNotFoundError):
                self.destination.fs.rm_file(self._path("sizes"))
            raise StoreError(f"{self._path(f'todo-{number}')} is damaged; run prepare again").of_kind("store")
        return task

    def load(self) -> tuple[dict[str, pa.Table], list[Size] | None]:
        """(rows of finished chunks by name, sizes of all chunks) of an interrupted preparation, or ({}, None).

        A note that a loss of power has damaged counts as not written: its chunk is repeated.
        """
        fs, folder = self.destination.fs, self.destination.path(self.folder)
        fs.invalidate_cache()
        sizes, declared = self._read("sizes", list), self._read("done-declared", list)
        if sizes is None or declared is None:
            return {}, None
        # A glob is not possible, because the name of the folder may contain the characters of a pattern.
        names = (path.rsplit("/", 1)[1] for path in fs.ls(folder, detail=False))
        finished = [name.removesuffix(".json") for name in names if name.startswith("done-") and name.endswith(".json")]
        notes = ((name.removeprefix("done-"), self._read(name, list)) for name in finished)
        done = {name: table_of(rows) for name, rows in notes if rows is not None}
        return done, [Size(*size) for size in sizes]

    def clear(self) -> None:
        """Remove the journals of all preparations of this dataset."""
        self.destination.remove(FOLDER)

    def _sync(self) -> None:
        if self._durable:
            self.destination.sync()

    def _path(self, name: str) -> str:
        return self.destination.path(f"{self.folder}/{name}.json")

    def _read(self, name: str, kind: type[Any]) -> Any:
        """The content of a file; None if it does not exist or is damaged."""
        try:
            content = json.loads(self.destination.fs.cat_file(self._path(name)))
        except (FileNotFoundError, ValueError):
            return None
        return content if isinstance(content, kind) else None

    def _write(self, name: str, value: Any) -> None:
        self.destination.write(f"{self.folder}/{name}.json", [plain_json.dumps(value).encode()])
