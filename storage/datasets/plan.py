"""The work of a dataset as values: the files to write, and their division into chunks of bounded size.

Packed, both are plain JSON values, which can be sent to workers and saved.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Collection, Iterable, Iterator, Sequence
from itertools import accumulate
from typing import Any, NamedTuple, TypeVar

from competitions.preparing.archives.containers import Container
from competitions.preparing.declaration import Archive, Content, Copy, Derived, Operation, Pass
from competitions.preparing.download import Download, Member
from storage.datasets.archives import MADE
from storage.datasets.manifest import Columns, Done

_SEQUENTIAL = (".7z", ".tar.gz", ".tgz")
"""Formats in which reaching a member means decompressing everything before it."""
MAX_CHUNK_BYTES = 128 << 20
MAX_CHUNK_FILES = 2_000
# Creating a file takes as long as copying this many bytes, so chunks of tiny files stay small.
FILE_COST_BYTES = 16 << 10
_BYTES = Done._fields.index("bytes")


class Task(NamedTuple):
    """A file to write: its part, its path in the part, the operation, and whether to compute its MD5."""

    part: str
    path: str
    operation: Operation
    md5: bool = False

    @property
    def name(self) -> str:
        """Path below the prepared directory."""
        return f"{self.part}/{self.path}"

    @property
    def computed(self) -> bool:
        """Whether the file has content computed by prepare.py, which only the process that ran prepare.py can write."""
        how = self.operation
        return isinstance(how, Content) or (isinstance(how, Archive) and not how.portable)

    @property
    def source(self) -> str:
        """The value for the column `source` of the manifest."""
        match self.operation:
            case Archive():
                return f"archive of {len(self.operation.entries)}"
            case Derived():
                return f"{self.operation.function}()"
            case _:
                return "prepare()"


class Copies(NamedTuple):
    """Members of one archive to copy, as columns. MD5s are computed for the rows numbered in `checked`, ascending.

    Columns are used because creating, sending and saving 100,000 objects would take longer than copying small files.
    Hidden copies must not show their order in the archive, see `storage.datasets.write_order`.
    """

    archive: str
    parts: list[str]
    paths: list[str]
    names: list[str]
    sizes: list[int]
    checked: list[int]
    hidden: bool = False

    @property
    def sources(self) -> list[str]:
        """The values for the column `source` of the manifest."""
        prefix = f"{self.archive}!/" if self.archive else ""
        return [prefix + name for name in self.names]

    def at(self, rows: Sequence[int]) -> Copies:
        """The rows with these numbers, in this order."""
        checked_rows = set(self.checked)
        return Copies(
            self.archive,
            [*map(self.parts.__getitem__, rows)],
            [*map(self.paths.__getitem__, rows)],
            [*map(self.names.__getitem__, rows)],
            [*map(self.sizes.__getitem__, rows)],
            [number for number, row in enumerate(rows) if row in checked_rows] if checked_rows else [],
            self.hidden,
        )

    def part(self, start: int, stop: int) -> Copies:
        """The rows from `start` to before `stop`."""
        rows = slice(start, stop)
        checked = self.checked[bisect_left(self.checked, start) : bisect_left(self.checked, stop)]
        return Copies(
            self.archive,
            self.parts[rows],
            self.paths[rows],
            self.names[rows],
            self.sizes[rows],
            [row - start for row in checked],
            self.hidden,
        )


class Same(NamedTuple):
    """Files that the committed dataset at the URL `like` has, perhaps under other names, as rows of the manifest."""

    like: str
    names: list[str]
    rows: Columns


class Several(NamedTuple):
    """Small files to write one after the other, or files that are read from one sequential archive."""

    tasks: list[Task | Copies | Same]


def group_copies(
    operations: Iterable[tuple[str, str, Operation]], checked: Collection[str] = ()
) -> list[Task | Copies]:
    """Tasks, followed by one `Copies` with all copies from each archive.

    Args:
        operations: part, path and operation of each file, as `Preparation.operations` yields them.
        checked: names below the prepared directory of the files whose MD5 is to be computed.
    """
    other_tasks: list[Task | Copies] = []
    copies: dict[str, Copies] = {}
    for part, path, operation in operations:
        md5 = bool(checked) and f"{part}/{path}" in checked
        if not isinstance(operation, Copy):
            other_tasks.append(Task(part, path, operation, md5))
            continue
        archive, name, size = operation.member
        group = copies.get(archive)
        if group is None:
            group = copies[archive] = Copies(archive, [], [], [], [], [])
        if md5:
            group.checked.append(len(group.names))
        group.parts.append(part)
        group.paths.append(path)
        group.names.append(name)
        group.sizes.append(size)
    return [*other_tasks, *copies.values()]


Work = Task | Copies | Same | Several
W = TypeVar("W", bound=Work)


def pass_of(work: Work) -> Pass | str | None:
    """The pass that yields this task and others: a computation of several files, or a sequential archive (its label).

    The result is None for other work, such as an archive with members of several sequential archives.
    """
    match work:
        case Task(operation=Content(among=Pass() as among)):
            return among
        case Task(operation=Archive(entries=entries)):
            labels = {entry.archive for _, entry in entries if isinstance(entry, Member)}
        case Copies(archive=label):
            labels = {label}
        case _:
            return None
    sequential = [label for label in labels if label.endswith(_SEQUENTIAL) and not label.startswith(MADE)]
    return sequential[0] if len(sequential) == 1 else None


def by_pass(works: Iterable[W]) -> list[list[W]]:
    """The tasks grouped by pass, each group at the position of its first task; other tasks one by one."""
    groups: dict[Pass | str | int, list[W]] = {}
    for number, work in enumerate(works):
        shared_pass = pass_of(work)
        groups.setdefault(number if shared_pass is None else shared_pass, []).append(work)
    return [*groups.values()]


class Chunk(NamedTuple):
    """A unit of work for one worker: number of files and bytes, and the packed task."""

    files: int
    bytes: int
    task: list[Any]


def plan(tasks: Iterable[Task | Copies | Same], download: Download) -> Iterator[Chunk]:
    """Yield tasks as chunks: copies in storage order with bounded bytes and files, other tasks one by one.

    Hidden copies keep their order. Everything that is read from one sequential archive is one chunk, because it is
    decompressed only once.

    Derived files of known size are grouped like copies. Files that another dataset has are only limited in number.

    Raises `TypeError` for content computed by prepare.py, which cannot be sent to a worker.
    """
    small_tasks: list[Task] = []
    for task, *further in by_pass(tasks):
        if pass_of(task) is not None:
            yield _chunk(Several([task, *further]) if further else task)
        elif isinstance(task, Task) and isinstance(task.operation, Derived) and task.operation.size:
            small_tasks.append(task)
        elif isinstance(task, Copies):
            if not task.hidden:
                task = in_storage_order(task, download.view(task.archive).container)
            yield from map(_chunk, split_copies(task))
        elif isinstance(task, Same):
            for start in range(0, len(task.names), MAX_CHUNK_FILES):
                part = slice(start, start + MAX_CHUNK_FILES)
                yield _chunk(Same(task.like, task.names[part], [column[part] for column in task.rows]))
        else:
            yield _chunk(task)
    yield from map(_chunk, split_small(small_tasks))


def _chunk(work: Task | Copies | Same | Several) -> Chunk:
    parts = work.tasks if isinstance(work, Several) else [work]
    files = sum(1 if isinstance(part, Task) else len(part.names) for part in parts)
    return Chunk(files, sum(map(size_of, parts)), pack(work))


def in_storage_order(copies: Copies, container: Container) -> Copies:
    """Sort copies by their position in the archive, so that it is read sequentially."""
    rows = {name: row for row, name in enumerate(copies.names)}
    order = [rows[name] for name in container.sizes if name in rows]
    if len(order) < len(copies.names):  # a member is copied several times, or is missing (a `KeyError`)
        position = {name: number for number, name in enumerate(container.sizes)}
        order = sorted(range(len(copies.names)), key=lambda row: position[copies.names[row]])
    return copies.at(order)


def split_copies(copies: Copies) -> Iterator[Copies]:
    """Yield copies in pieces of bounded bytes and number of files."""
    count = len(copies.sizes)
    costs = list(accumulate((size + FILE_COST_BYTES for size in copies.sizes), initial=0))  # of the rows before each
    start = 0
    while start < count:
        fitting = bisect_right(costs, costs[start] + MAX_CHUNK_BYTES, lo=start) - 1
        stop = min(max(fitting, start + 1), start + MAX_CHUNK_FILES)
        yield copies.part(start, stop)
        start = stop


def split_small(tasks: Iterable[Task]) -> Iterator[Several]:
    """Yield derived files in pieces of bounded bytes and number of files."""
    chunk: list[Task | Copies | Same] = []
    size = 0
    for task in tasks:
        cost = size_of(task) + FILE_COST_BYTES
        if chunk and (size + cost > MAX_CHUNK_BYTES or len(chunk) == MAX_CHUNK_FILES):
            yield Several(chunk)
            chunk, size = [], 0
        chunk.append(task)
        size += cost
    if chunk:
        yield Several(chunk)


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
        return ["several", [pack(subtask) for subtask in task.tasks]]
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
    kind, *fields = packed
    if kind == "copies":
        return Copies(*fields)
    if kind == "same":
        return Same(*fields)
    if kind == "several":
        return Several([subtask for subtask in map(unpack, fields[0]) if not isinstance(subtask, Several)])
    if kind == "archive":
        part, path, md5, suffix, names, members, stored, folders = fields
        entries = tuple(zip(names, map(Member, *members), strict=True)) if names else ()
        return Task(part, path, Archive(suffix, entries, stored, tuple(folders)), md5)
    part, path, md5, function, arguments, size = fields
    return Task(part, path, Derived(function, tuple(arguments), size), md5)
