"""What is to be done, as values that travel: tasks cut into chunks of bounded bytes, packed column by column.

A hundred thousand copies are a hundred thousand small objects, which cost more to send and to note than the copying of
small files. Packed as columns they cost nearly nothing, and are plain JSON.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

from competitions.download import Download, Member
from competitions.preparation import Archive, Copy, Derived
from storage.execute import Task

_CHUNK_BYTES = 64 << 20
_CHUNK_FILES = 2_000
_FILE_COST = 16 << 10  # bytes that opening and creating a file is worth: keeps chunks of tiny files small


class Chunk(NamedTuple):
    """Work for one worker at a time: how many files, how many bytes, and the packed tasks."""

    files: int
    bytes: int
    tasks: list[Any]


def in_storage_order(tasks: Iterable[Task], download: Download) -> list[Task]:
    """Copies in the order in which their archives hold them: drawn at random, they would be read at random."""
    copies: dict[str, list[Task]] = {}
    ordered = []
    for task in tasks:
        if isinstance(task.operation, Copy):
            copies.setdefault(task.operation.member.archive, []).append(task)
        else:
            ordered.append(task)
    for archive, group in copies.items():
        place = {name: number for number, name in enumerate(download.view(archive).container.sizes)}
        ordered += sorted(group, key=lambda task: place[task.operation.member.name])  # type: ignore[union-attr]
    return ordered


def cut(tasks: Iterable[Task]) -> list[list[Task]]:
    """Chunks of bounded bytes and number of files; members of one archive stay together and in order."""
    chunks: list[list[Task]] = []
    current: list[Task] = []
    size = 0
    archive: str | None = None
    whole = False
    for task in sorted(tasks, key=lambda task: _archive(task) or ""):
        source = _archive(task)
        if source != archive:
            whole = source is not None and source.endswith((".7z", ".gz", ".tgz"))
        cost = size_of(task) + _FILE_COST
        full = size + cost > _CHUNK_BYTES or len(current) >= _CHUNK_FILES or source is None
        if current and (source != archive or (full and not whole)):
            chunks.append(current)
            current, size = [], 0
        current.append(task)
        size += cost
        archive = source
    return [*chunks, current] if current else chunks


def _archive(task: Task) -> str | None:
    """The archive that a copy is made from ("" for the download itself), None for other operations."""
    operation = task.operation
    return operation.member.archive if type(operation) is Copy else None


def size_of(task: Task) -> int:
    """Bytes that carrying out the task reads, 0 where that is not known."""
    if type(task.operation) is Copy:  # most are
        return task.operation.member.size
    match task.operation:
        case Archive(entries=entries):
            return sum(getattr(entry, "size", 0) for _, entry in entries)
        case _:
            return 0


def pack(tasks: Iterable[Task]) -> Chunk:
    """Tasks as JSON values. Raises `TypeError` for content that `prepare` computed: it cannot travel."""
    tasks = list(tasks)
    copies: dict[tuple[str, str], list[list[Any]]] = {}
    others = []
    for part, path, operation, md5 in tasks:
        match operation:
            case Copy((archive, name, size)):
                group = copies.get((part, archive))
                if group is None:
                    group = copies[part, archive] = [[], [], [], []]
                if md5:
                    group[3].append(len(group[0]))
                group[0].append(path)
                group[1].append(name)
                group[2].append(size)
            case Archive(kind, entries, stored, folders):
                names = [name for name, _ in entries]
                members: list[Any] = [list(field) for field in zip(*(member for _, member in entries), strict=True)]
                others.append(["archive", part, path, md5, kind, names, members, stored, list(folders)])
            case Derived(function, arguments):
                others.append(["derived", part, path, md5, function, list(arguments)])
            case _:
                raise TypeError(f"{part}/{path}: computed content does not travel")
    packed = [["copies", *key, *columns] for key, columns in copies.items()]
    return Chunk(len(tasks), sum(map(size_of, tasks)), packed + others)


def unpack(packed: Iterable[Any]) -> list[Task]:
    """The tasks that `pack` packed."""
    tasks: list[Task] = []
    for kind, part, *rest in packed:
        if kind == "copies":
            archive, paths, names, sizes, checked = rest
            with_md5 = set(checked)
            tasks += [
                Task(part, path, Copy(Member(archive, name, size)), number in with_md5)
                for number, (path, name, size) in enumerate(zip(paths, names, sizes, strict=True))
            ]
        elif kind == "archive":
            path, md5, suffix, names, members, stored, folders = rest
            entries = tuple(zip(names, map(Member, *members), strict=True)) if names else ()
            tasks.append(Task(part, path, Archive(suffix, entries, stored, tuple(folders)), md5))
        else:
            path, md5, function, arguments = rest
            tasks.append(Task(part, path, Derived(function, tuple(arguments)), md5))
    return tasks
