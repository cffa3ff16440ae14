"""Execute operations of a declaration on a worker: write files and return their manifest rows."""

from __future__ import annotations

import contextlib
import os
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING

from common.concurrency import bounded_map
from competitions.preparing.archives.containers import Container, DirectoryContainer, RemoteDirectory
from competitions.preparing.archives.zips import ZipContainer
from competitions.preparing.declaration import Archive, Content, Derived, Pass
from competitions.preparing.download import Download
from storage.datasets.archives import Containers, Passing, Takers, begun, build, takers_of
from storage.datasets.manifest import Columns, Done, columns_of, joined
from storage.datasets.plan import Copies, Same, Several, Task, Work, by_pass, pass_of
from storage.writers import MAX_BYTES_IN_FLIGHT, MAX_TRANSFERS, MAX_WHOLE_BYTES, Destination, HashingWriter, Written

if TYPE_CHECKING:
    from storage.datasets.job import Preparable

HIDDEN_MTIME = 315532800
"""The modification time of hidden files, as in zip archives: 1980-01-01 in seconds since 1970."""
MAX_OPEN_ARCHIVES = 20  # archives that are written at the same time
MAX_SMALL_BYTES = 1 << 20  # files up to this size are read whole and written in one call


def execute(
    tasks: Iterable[Work],
    competition: Preparable | None,
    download: Download,
    destination: Destination,
) -> Columns:
    """Write the files of `tasks` below `destination` and return their manifest rows.

    It is idempotent: repeating a task writes the same bytes under the same name. Derived files need `competition`.
    """
    done: list[Columns] = []
    for task, *further in by_pass(tasks):
        among = pass_of(task)
        if isinstance(among, Pass):
            done.append(_write_together(among, [task, *further], destination))
        elif among is not None:
            tasks_of_pass = [task, *further]
            for start in range(0, len(tasks_of_pass), MAX_OPEN_ARCHIVES):
                done += _take_together(among, tasks_of_pass[start : start + MAX_OPEN_ARCHIVES], download, destination)
        elif isinstance(task, Copies):
            done.append(_copied(task, download.view(task.archive).container, destination))
        elif isinstance(task, Same):
            _take(task, destination)
            done.append(task.rows)
        elif isinstance(task, Several):
            done.append(execute(task.tasks, competition, download, destination))
        else:
            written_one = _write(task, competition, download, destination)
            done.append(columns_of([Done(task.part, task.path, *written_one, task.source)]))
    return joined(done)


def _copied(copies: Copies, container: Container, destination: Destination) -> Columns:
    bytes_, hashes, md5s = zip(*_copy(copies, container, destination), strict=True)
    return [copies.parts, copies.paths, list(bytes_), list(hashes), list(md5s), copies.sources]


def _copy(copies: Copies, container: Container, destination: Destination) -> list[Written]:
    if not destination.local:
        return _upload(copies, container, destination)
    if isinstance(container, DirectoryContainer):
        return _link(copies, container, destination)
    if not isinstance(container, ZipContainer):
        return _stream(copies, container, destination)
    if copies.hidden:
        return _hide(copies, container, destination)
    if max(copies.sizes) <= MAX_SMALL_BYTES:
        return _put(copies, container, destination)
    small_rows = [row for row, size in enumerate(copies.sizes) if size <= MAX_SMALL_BYTES]
    large = [row for row, size in enumerate(copies.sizes) if size > MAX_SMALL_BYTES]
    written = dict(zip(small_rows, _put(copies.at(small_rows), container, destination), strict=True))
    written |= zip(large, _stream(copies.at(large), container, destination), strict=True)
    return [written[row] for row in range(len(copies.names))]


def _targets(copies: Copies) -> Iterator[tuple[str, str, bool]]:
    """Yield (name below the prepared directory, member, whether to compute its MD5) of each row."""
    checked = set(copies.checked)
    for row, (part, path, name) in enumerate(zip(copies.parts, copies.paths, copies.names, strict=True)):
        yield f"{part}/{path}", name, row in checked


def _link(copies: Copies, container: DirectoryContainer, destination: Destination) -> list[Written]:
    root = str(container.root)
    done = []
    for target, name, md5 in _targets(copies):
        source = f"{root}/{name}"
        written = destination.link(target, source, md5)
        if written is None:
            with open(source, "rb") as file:  # noqa: PTH123
                written = destination.copy(target, file, md5)
        done.append(written)
    return done


def _put(copies: Copies, container: ZipContainer, destination: Destination) -> list[Written]:
    return [destination.put(target, container.read(name), md5) for target, name, md5 in _targets(copies)]


def _hide(copies: Copies, container: ZipContainer, destination: Destination) -> list[Written]:
    done = []
    for size, (target, name, md5) in zip(copies.sizes, _targets(copies), strict=True):
        if size <= MAX_SMALL_BYTES:
            done.append(destination.put(target, container.read(name), md5))
        else:
            with container.open(name) as file:
                done.append(destination.copy(target, file, md5, size))
        os.utime(destination.path(target), (HIDDEN_MTIME, HIDDEN_MTIME))
    return done


def _stream(copies: Copies, container: Container, destination: Destination) -> list[Written]:
    rows_of_member: dict[str, list[tuple[int, str, bool]]] = defaultdict(list)
    for row, (target, name, md5) in enumerate(_targets(copies)):
        rows_of_member[name].append((row, target, md5))
    done: dict[int, Written] = {}
    for name, file in container.stream(rows_of_member):
        (row, first_target, md5), *further = rows_of_member[name]
        done[row] = destination.copy(first_target, file, md5, copies.sizes[row])
        for row, target, md5 in further:  # a sequential container yields a member's bytes only once
            with destination.fs.open(destination.path(first_target), "rb") as first_copy:
                done[row] = destination.copy(target, first_copy, md5, copies.sizes[row])
    return [done[row] for row in range(len(copies.names))]


def _upload(copies: Copies, container: Container, destination: Destination) -> list[Written]:
    """Copy to an object store. While some files are uploaded, the next ones are read."""
    uploads = _random_uploads if container.random_access else _sequential_uploads
    calls = uploads(copies, container, destination)
    done = dict(bounded_map(calls, count=MAX_TRANSFERS, total=MAX_BYTES_IN_FLIGHT))
    return [done[row] for row in range(len(copies.names))]


_Uploads = Iterator[tuple[int, Callable[[], tuple[int, Written]]]]
"""The bytes in memory of each upload, and the call, which returns the number of the row and what was written."""


def _random_uploads(copies: Copies, container: Container, destination: Destination) -> _Uploads:
    def put(row: int, target: str, data: bytes, md5: bool) -> tuple[int, Written]:
        return row, destination.put(target, data, md5)

    def copy(row: int, target: str, name: str, md5: bool) -> tuple[int, Written]:
        with container.open(name) as file:
            if copies.sizes[row] <= MAX_WHOLE_BYTES:
                return row, destination.put(target, file.read(), md5)
            return row, destination.copy(target, file, md5, copies.sizes[row])

    for row, (target, name, md5) in enumerate(_targets(copies)):
        size = copies.sizes[row]
        if size <= MAX_WHOLE_BYTES and not isinstance(container, DirectoryContainer | RemoteDirectory):
            # Read here, in storage order, because the threads would share one stream of the archive.
            yield size, partial(put, row, target, _content(container, name), md5)
        else:
            yield min(size, MAX_WHOLE_BYTES), partial(copy, row, target, name, md5)


def _content(container: Container, name: str) -> bytes:
    if isinstance(container, ZipContainer):
        return container.read(name)
    with container.open(name) as file:
        return file.read()


def _sequential_uploads(copies: Copies, container: Container, destination: Destination) -> _Uploads:
    def put(row: int, target: str, data: bytes, md5: bool) -> tuple[int, Written]:
        return row, destination.put(target, data, md5)

    def copied(row: int, written: Written) -> tuple[int, Written]:
        return row, written

    rows_of_member: dict[str, list[int]] = defaultdict(list)
    for row, name in enumerate(copies.names):
        rows_of_member[name].append(row)
    targets = list(_targets(copies))
    for name, file in container.stream(rows_of_member):
        first, *further = rows_of_member[name]
        if copies.sizes[first] <= MAX_WHOLE_BYTES:
            data = file.read()
            for row in (first, *further):
                yield len(data), partial(put, row, targets[row][0], data, targets[row][2])
            continue
        # The stream is only valid until the next member. The parts of the object are uploaded concurrently.
        yield (
            0,
            partial(
                copied,
                first,
                destination.copy(targets[first][0], file, targets[first][2], copies.sizes[first]),
            ),
        )
        for row in further:  # a sequential container yields a member's bytes only once
            with destination.fs.open(destination.path(targets[first][0]), "rb") as first_copy:
                yield 0, partial(copied, row, destination.copy(targets[row][0], first_copy, targets[row][2]))


def _take(same: Same, destination: Destination) -> None:
    source = Destination(same.like)
    targets = zip(same.names, same.rows[0], same.rows[1], strict=True)
    takes = ((f"{part}/{path}", source.path(name)) for name, part, path in targets)
    if destination.local:
        for target, path in takes:
            destination.take(target, path)
    else:  # the server copies
        for _ in bounded_map(((0, partial(destination.take, *paths)) for paths in takes), count=MAX_TRANSFERS, total=1):
            pass


def _write_together(among: Pass, tasks: Iterable[Work], destination: Destination) -> Columns:
    numbered: dict[int, list[HashingWriter]] = defaultdict(list)
    done = []
    with contextlib.ExitStack() as stack:
        for task in tasks:
            if isinstance(task, Task) and isinstance(task.operation, Content):
                writer = stack.enter_context(destination.open(task.name, task.md5))
                done.append((task, writer))
                numbered[task.operation.number].append(writer)
        for number, piece in among.run():
            for writer in numbered.get(number, ()):
                writer.write(piece)
    return columns_of(Done(task.part, task.path, *writer.written(), task.source) for task, writer in done)


def _take_together(
    label: str, works: Sequence[Work], download: Download, destination: Destination
) -> Iterator[Columns]:
    """Copy members of a sequential archive, and build archives of others, while it is decompressed once."""
    containers = Containers(download)
    takers: Takers = defaultdict(list)
    copies = [work for work in works if isinstance(work, Copies)]
    archives = []
    with contextlib.ExitStack() as stack:
        for work in works:
            if isinstance(work, Task) and isinstance(work.operation, Archive):
                begun_archive = stack.enter_context(begun(work.name, work.operation, containers, destination, work.md5))
                archives.append((work, begun_archive))
                for member, of_member in takers_of(work.operation, begun_archive, containers)[label].items():
                    takers[member] += of_member
        source: Container = Passing(containers[label], takers)
        if not copies:
            for _ in source.stream(()):
                pass
        for work in copies:  # there is at most one, see `group_copies`
            yield _copied(work, source, destination)
            source = containers[label]
    yield columns_of(
        Done(work.part, work.path, *begun_archive.written, work.source) for work, begun_archive in archives
    )


def _write(task: Task, competition: Preparable | None, download: Download, destination: Destination) -> Written:
    operation = task.operation
    if isinstance(operation, Content):
        return destination.write(task.name, operation.pieces(), task.md5)
    if isinstance(operation, Derived) and competition is not None:
        pieces = competition.function(operation.function)(download, *operation.arguments)
        return destination.write(task.name, pieces, task.md5)
    if isinstance(operation, Archive):
        return build(task.name, operation, download, destination, task.md5)
    raise TypeError(f"unknown operation {operation!r}")
