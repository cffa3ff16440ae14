"""Files that a new dataset has in common with one of the same download that the store has already.

Editions mostly differ in tables, while images and recordings are the same. Such files are linked or cloned in a local
store, and copied by the server in a remote one, so that they are not read from the download again.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from storage.datasets.execute import Copies, Same, Task
from storage.datasets.manifest import Done

if TYPE_CHECKING:
    import pyarrow as pa


def with_reuse(tasks: Iterable[Task | Copies | Same], manifest: pa.Table, like: str) -> Iterator[Task | Copies | Same]:
    """The tasks, in which copies of members that the dataset at the URL `like` has are taken from it.

    The dataset is committed and made of the same download: the same member of it is the same file.
    """
    for task in tasks:
        if not isinstance(task, Copies):
            yield task
            continue
        found = _numbers(task, manifest)
        same = [row for row, number in enumerate(found) if number is not None]
        if same:
            yield _taken(task.at(same), manifest.take([number for number in found if number is not None]), like)
        if len(same) < len(found):
            yield task.at([row for row, number in enumerate(found) if number is None])


def _numbers(copies: Copies, manifest: pa.Table) -> list[int | None]:
    """For each copy the row of the manifest with the same file, None if there is none with the hashes that it needs."""
    import pyarrow as pa
    import pyarrow.compute as pc

    numbers = pc.index_in(pa.array(copies.sources, pa.string()), value_set=manifest["source"])
    sizes = pc.equal(manifest["bytes"].take(numbers), pa.array(copies.sizes, pa.int64()))
    needed = pa.array(_flags(copies), pa.bool_())
    hashed = pc.or_(pc.invert(needed), pc.is_valid(manifest["md5"].take(numbers)))
    usable = pc.fill_null(pc.and_(sizes, hashed), False)
    return list(pc.if_else(usable, numbers, None).to_pylist())


def _flags(copies: Copies) -> list[bool]:
    checked = set(copies.checked)
    return [row in checked for row in range(len(copies.names))]


def _taken(copies: Copies, rows: pa.Table, like: str) -> Same:
    columns = {name: rows[name].to_pylist() for name in Done._fields}
    names = [f"{part}/{path}" for part, path in zip(columns["part"], columns["path"], strict=True)]
    columns |= {"part": copies.parts, "path": copies.paths, "source": copies.sources}
    return Same(like, names, [columns[name] for name in Done._fields])
