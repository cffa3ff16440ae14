"""The plan of a dataset: chunks of bounded size, as plain JSON values that can be sent to workers."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator
from itertools import accumulate
from typing import Any, NamedTuple

from competitions.preparing.archives.containers import Container
from competitions.preparing.declaration import Archive, Derived
from competitions.preparing.download import Download, Member
from storage.datasets.manifest import Done
from storage.datasets.work import Copies, Same, Several, Task, by_pass, pass_of

_CHUNK_BYTES = 128 << 20
_CHUNK_FILES = 2_000
_LEAST_BYTES, _LEAST_FILES = 8 << 20, 100  # of the last chunks, where these become smaller
_FILE_COST = 16 << 10  # creating a file takes as long as copying this many bytes, so chunks of tiny files stay small
_BYTES = Done._fields.index("bytes")


class Chunk(NamedTuple):
    """A unit of work for one worker: number of files and bytes, and the packed task."""

    files: int
    bytes: int
    task: list[Any]


def plan(tasks: Iterable[Task | Copies | Same], download: Download, processes: int = 0) -> Iterator[Chunk]:
    """Yield tasks as chunks: copies in storage order with bounded bytes and files, other tasks one by one.

    Hidden copies keep their order. With a number of `processes`, copies end with chunks that become smaller and
    smaller: what the others have to wait for at the end is little. All that is read of one sequential archive is one
    chunk, because it is decompressed once for all.

    Derived files of known size are put together like copies. Files that another dataset has are only bounded in number.

    Raises `TypeError` for content computed by prepare.py, which cannot be sent to a worker.
    """
    small: list[Task] = []
    for task, *others in by_pass(tasks):
        if pass_of(task) is not None:
            yield _chunk(Several([task, *others]) if others else task)
        elif isinstance(task, Task) and isinstance(task.operation, Derived) and task.operation.size:
            small.append(task)
        elif isinstance(task, Copies):
            if not task.hidden:
                task = in_storage_order(task, download.view(task.archive).container)
            yield from map(_chunk, split_copies(task, processes))
        elif isinstance(task, Same):
            for start in range(0, len(task.names), _CHUNK_FILES):
                piece = slice(start, start + _CHUNK_FILES)
                yield _chunk(Same(task.like, task.names[piece], [column[piece] for column in task.rows]))
        else:
            yield _chunk(task)
    yield from map(_chunk, split_small(small))


def _chunk(work: Task | Copies | Same | Several) -> Chunk:
    parts = work.tasks if isinstance(work, Several) else [work]
    files = sum(1 if isinstance(part, Task) else len(part.names) for part in parts)
    return Chunk(files, sum(map(size_of, parts)), pack(work))


def in_storage_order(copies: Copies, container: Container) -> Copies:
    """Sort copies by their position in the archive, so that it is read sequentially."""
    rows = {name: row for row, name in enumerate(copies.names)}
    order = [rows[name] for name in container.sizes if name in rows]
    if len(order) < len(copies.names):  # a member is copied several times, or is missing (a `KeyError`)
        place = {name: number for number, name in enumerate(container.sizes)}
        order = sorted(range(len(copies.names)), key=lambda row: place[copies.names[row]])
    return copies.at(order)


def split_copies(copies: Copies, processes: int = 0) -> Iterator[Copies]:
    """Yield copies in pieces of bounded bytes and number of files.

    With a number of `processes`, a piece is at most half of what each has left to do if the rest is shared evenly.
    """
    count = len(copies.sizes)
    costs = list(accumulate((size + _FILE_COST for size in copies.sizes), initial=0))  # of the rows before each
    start = 0
    while start < count:
        most_bytes, most_files = _most(costs[-1] - costs[start], count - start, processes)
        fitting = bisect_right(costs, costs[start] + most_bytes, lo=start) - 1
        stop = min(max(fitting, start + 1), start + most_files)
        yield copies.part(start, stop)
        start = stop


def _most(size: int, files: int, processes: int) -> tuple[int, int]:
    """Bytes and files of the next piece, if these are left."""
    if not processes:
        return _CHUNK_BYTES, _CHUNK_FILES
    share = 2 * processes
    return min(_CHUNK_BYTES, max(_LEAST_BYTES, size // share)), min(_CHUNK_FILES, max(_LEAST_FILES, files // share))


def split_small(tasks: Iterable[Task]) -> Iterator[Several]:
    """Yield derived files in pieces of bounded bytes and number of files."""
    piece: list[Task | Copies | Same] = []
    size = 0
    for task in tasks:
        more = size_of(task) + _FILE_COST
        if piece and (size + more > _CHUNK_BYTES or len(piece) == _CHUNK_FILES):
            yield Several(piece)
            piece, size = [], 0
        piece.append(task)
        size += more
    if piece:
        yield Several(piece)


def size_of(task: Task | Copies | Same) -> int:
    """Number of bytes that the task reads; 0 if unknown."""
    if isinstance(task, Copies):
        return sum(task.sizes)
    if isinstance(task, Same):
        return sum(task.rows[_BYTES])
    match task.operation:
        case Archive(entries=entries):
            return sum(getattr(entry, "size", 0) for _, entry in entries)
        case Derived(size=size):
            return size
        case _:
            return 0


def pack(task: Task | Copies | Same | Several) -> list[Any]:
    """Convert a task to JSON values. Raises `TypeError` for content computed by prepare.py."""
    if isinstance(task, Copies):
        return ["copies", *task]
    if isinstance(task, Same):
        return ["same", *task]
    if isinstance(task, Several):
        return ["several", [pack(each) for each in task.tasks]]
    part, path, operation, md5 = task
    match operation:
        case Archive(kind, entries, stored, folders):
            names = [name for name, _ in entries]
            members: list[Any] = [list(field) for field in zip(*(member for _, member in entries), strict=True)]
            return ["archive", part, path, md5, kind, names, members, stored, list(folders)]
        case Derived(function, arguments, size):
            return ["derived", part, path, md5, function, list(arguments), size]
        case _:
            raise TypeError(f"{part}/{path}: computed content cannot be sent to a worker")


def unpack(packed: list[Any]) -> Task | Copies | Same | Several:
    """The inverse of `pack`."""
    kind, *rest = packed
    if kind == "copies":
        return Copies(*rest)
    if kind == "same":
        return Same(*rest)
    if kind == "several":
        return Several([each for each in map(unpack, rest[0]) if not isinstance(each, Several)])
    if kind == "archive":
        part, path, md5, suffix, names, members, stored, folders = rest
        entries = tuple(zip(names, map(Member, *members), strict=True)) if names else ()
        return Task(part, path, Archive(suffix, entries, stored, tuple(folders)), md5)
    part, path, md5, function, arguments, size = rest
    return Task(part, path, Derived(function, tuple(arguments), size), md5)
