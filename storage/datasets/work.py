"""Work as values: the files to write, one by one or many at once."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Collection, Iterable, Sequence
from typing import NamedTuple, TypeVar

from competitions.preparing.declaration import Archive, Content, Copy, Derived, Operation, Pass
from competitions.preparing.download import Member
from storage.datasets.archives import MADE
from storage.datasets.manifest import Columns

_SEQUENTIAL = (".7z", ".tar.gz", ".tgz")
"""Formats in which reaching a member means decompressing everything before it."""


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
        """Whether it has content computed by prepare.py, which only the process that ran prepare.py can write."""
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
    Hidden ones must not show in which order they are in the archive, see `storage.datasets.traces`.
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
        wanted = set(self.checked)
        return Copies(
            self.archive,
            [*map(self.parts.__getitem__, rows)],
            [*map(self.paths.__getitem__, rows)],
            [*map(self.names.__getitem__, rows)],
            [*map(self.sizes.__getitem__, rows)],
            [number for number, row in enumerate(rows) if row in wanted] if wanted else [],
            self.hidden,
        )

    def part(self, start: int, stop: int) -> Copies:
        """The rows from `start` to before `stop`."""
        some = slice(start, stop)
        checked = self.checked[bisect_left(self.checked, start) : bisect_left(self.checked, stop)]
        return Copies(
            self.archive,
            self.parts[some],
            self.paths[some],
            self.names[some],
            self.sizes[some],
            [row - start for row in checked],
            self.hidden,
        )


class Same(NamedTuple):
    """Files that a committed dataset at the URL `like` has under other names, as rows of the manifest."""

    like: str
    names: list[str]
    rows: Columns


class Several(NamedTuple):
    """Small files to write one after the other, or what is read of one sequential archive."""

    tasks: list[Task | Copies | Same]


def group_copies(
    operations: Iterable[tuple[str, str, Operation]], checked: Collection[str] = ()
) -> list[Task | Copies]:
    """Tasks, followed by one `Copies` with all copies from each archive.

    Args:
        operations: part, path and operation of each file, as `Preparation.operations` yields them.
        checked: names below the prepared directory of the files whose MD5 is to be computed.
    """
    others: list[Task | Copies] = []
    copies: dict[str, Copies] = {}
    for part, path, operation in operations:
        md5 = bool(checked) and f"{part}/{path}" in checked
        if not isinstance(operation, Copy):
            others.append(Task(part, path, operation, md5))
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
    return [*others, *copies.values()]


Work = Task | Copies | Same | Several
W = TypeVar("W", bound=Work)


def pass_of(work: Work) -> Pass | str | None:
    """The pass that also gives others: one that computes several files, or one over a sequential archive (its label).

    None for other work, such as an archive of members of several sequential ones.
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
    found = [label for label in labels if label.endswith(_SEQUENTIAL) and not label.startswith(MADE)]
    return found[0] if len(found) == 1 else None


def by_pass(works: Iterable[W]) -> list[list[W]]:
    """The work of one pass together, where the first of it is, and all other work one by one."""
    found: dict[Pass | str | int, list[W]] = {}
    for number, work in enumerate(works):
        among = pass_of(work)
        found.setdefault(number if among is None else among, []).append(work)
    return [*found.values()]
