"""What is to be done, as values that travel: chunks of bounded bytes, plain JSON."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

from competitions.preparing.archives.containers import Container
from competitions.preparing.declaration import Archive, Derived
from competitions.preparing.download import Download, Member
from storage.datasets.execute import Copies, Task

_CHUNK_BYTES = 128 << 20
_CHUNK_FILES = 2_000
_FILE_COST = 16 << 10  # bytes that opening and creating a file is worth: keeps chunks of tiny files small
_ONE_PASS = (".7z", ".gz", ".tgz")  # from front to back: whoever wants a member reads all before it


class Chunk(NamedTuple):
    """Work for one worker at a time: how many files, how many bytes, and the packed task."""

    files: int
    bytes: int
    task: list[Any]


def plan(tasks: Iterable[Task | Copies], download: Download) -> list[Chunk]:
    """Chunks: copies of bounded bytes and number, in the order in which their archive holds them; all else one by one.

    Raises `TypeError` for content that `prepare` computed: it cannot travel.
    """
    chunks = []
    for task in tasks:
        if isinstance(task, Copies):
            copies = in_storage_order(task, download.view(task.archive).container)
            chunks += [Chunk(len(each.names), sum(each.sizes), pack(each)) for each in cut(copies)]
        else:
            chunks.append(Chunk(1, size_of(task), pack(task)))
    return chunks


def in_storage_order(copies: Copies, container: Container) -> Copies:
    """Copies in the order in which their archive holds them: drawn at random, they would be read at random."""
    rows = {name: row for row, name in enumerate(copies.names)}
    order = [rows[name] for name in container.sizes if name in rows]
    if len(order) < len(copies.names):  # a member goes to several places, or (a `KeyError`) is not there
        place = {name: number for number, name in enumerate(container.sizes)}
        order = sorted(range(len(copies.names)), key=lambda row: place[copies.names[row]])
    return copies.at(order)


def cut(copies: Copies) -> Iterator[Copies]:
    """Pieces of bounded bytes and number of files, but all of an archive that is read from front to back in one."""
    if copies.archive.endswith(_ONE_PASS):
        yield copies
        return
    start = size = 0
    for number, more in enumerate(copies.sizes):
        size += more + _FILE_COST
        if number > start and (size > _CHUNK_BYTES or number - start == _CHUNK_FILES):
            yield copies.at(range(start, number))
            start, size = number, more + _FILE_COST
    yield copies.at(range(start, len(copies.sizes)))


def size_of(task: Task) -> int:
    """Bytes that carrying out the task reads, 0 where that is not known."""
    match task.operation:
        case Archive(entries=entries):
            return sum(getattr(entry, "size", 0) for _, entry in entries)
        case _:
            return 0


def pack(task: Task | Copies) -> list[Any]:
    """A task as JSON values. Raises `TypeError` for content that `prepare` computed."""
    if isinstance(task, Copies):
        return ["copies", *task]
    part, path, operation, md5 = task
    match operation:
        case Archive(kind, entries, stored, folders):
            names = [name for name, _ in entries]
            members: list[Any] = [list(field) for field in zip(*(member for _, member in entries), strict=True)]
            return ["archive", part, path, md5, kind, names, members, stored, list(folders)]
        case Derived(function, arguments):
            return ["derived", part, path, md5, function, list(arguments)]
        case _:
            raise TypeError(f"{part}/{path}: computed content does not travel")


def unpack(packed: list[Any]) -> Task | Copies:
    """The task that `pack` packed."""
    kind, *rest = packed
    if kind == "copies":
        return Copies(*rest)
    if kind == "archive":
        part, path, md5, suffix, names, members, stored, folders = rest
        entries = tuple(zip(names, map(Member, *members), strict=True)) if names else ()
        return Task(part, path, Archive(suffix, entries, stored, tuple(folders)), md5)
    part, path, md5, function, arguments = rest
    return Task(part, path, Derived(function, tuple(arguments)), md5)
