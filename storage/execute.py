"""Carrying out operations: one value in, one written file out. This runs on workers."""

from __future__ import annotations

import contextlib
import os
import tarfile
import tempfile
import zipfile
from collections import defaultdict
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import IO, Any, NamedTuple

from competitions.competition import Competition
from competitions.containers import DirectoryContainer
from competitions.download import Download, Member
from competitions.preparation import Archive, Content, Copy, Derived, Operation
from competitions.zips import ZipContainer
from storage.writers import BLOCK, Destination, Written
from storage.zips import ZipWriter

_SMALL = 1 << 20  # a file up to this size is read whole and written in one call
_UPLOADS = 16  # small objects on their way to an object store at one time, a worker: each takes long and costs little


class Task(NamedTuple):
    """A file to write: part, path below it, how, and whether its MD5 is wanted."""

    part: str
    path: str
    operation: Operation
    md5: bool = False

    @property
    def name(self) -> str:
        """Path below the prepared directory."""
        return f"{self.part}/{self.path}"

    @property
    def source(self) -> str:
        """What the manifest says of the file's origin."""
        match self.operation:
            case Copy(member):
                return str(member)
            case Archive():
                return f"archive of {len(self.operation.entries)}"
            case Derived():
                return f"{self.operation.function}()"
            case _:
                return "prepare()"


class Done(NamedTuple):
    """One row of the manifest."""

    part: str
    path: str
    bytes: int
    hash: str
    md5: str | None
    source: str


def execute(
    tasks: Iterable[Task], competition: Competition, download: Download, destination: Destination
) -> list[Done]:
    """Write the files of `tasks` below `destination`; returns their manifest rows.

    Idempotent: doing a task again writes the same bytes under the same name.
    """
    done: list[Done] = []
    copies: dict[str, list[Task]] = defaultdict(list)
    for task in tasks:
        if isinstance(task.operation, Copy):
            copies[task.operation.member.archive].append(task)
            continue
        written = _write(task, competition, download, destination)
        done.append(_row(task, written))
    for archive, group in copies.items():
        done += _copy(group, download.view(archive), destination)
    return done


def _row(task: Task, written: Written) -> Done:
    return Done(task.part, task.path, written.bytes, written.hash, written.md5, task.source)


def _copy(tasks: list[Task], view: Download, destination: Destination) -> Iterator[Done]:
    container = view.container
    if isinstance(container, DirectoryContainer):
        yield from _link(tasks, container, destination)
        return
    if isinstance(container, ZipContainer):
        small = [task for task in tasks if _member(task).size <= _SMALL]
        tasks = [task for task in tasks if _member(task).size > _SMALL]
        yield from _put(small, container, destination)
    wanted: dict[str, list[Task]] = defaultdict(list)
    for task in tasks:
        wanted[_member(task).name].append(task)
    for name, file in container.stream(wanted):
        first, *others = wanted[name]
        yield _row(first, destination.copy(first.name, file, first.md5))
        for task in others:  # the same member to several places: a one-pass container gives its bytes once only
            with destination.fs.open(destination.path(first.name), "rb") as again:
                yield _row(task, destination.copy(task.name, again, task.md5))


def _link(tasks: list[Task], container: DirectoryContainer, destination: Destination) -> Iterator[Done]:
    root = str(container.root)
    for task in tasks:
        part, path, operation, md5 = task
        member: Member = operation.member  # type: ignore[union-attr]
        source = f"{root}/{member.name}"
        written = destination.link(f"{part}/{path}", source, md5, member.size)
        if written is None:
            with open(source, "rb") as file:  # noqa: PTH123
                written = destination.copy(task.name, file, md5)
        yield Done(part, path, *written, str(member))


def _put(tasks: list[Task], container: ZipContainer, destination: Destination) -> Iterator[Done]:
    if destination.local:
        for part, path, operation, md5 in tasks:  # of tiny files, what is done for each is what takes the time
            member: Member = operation.member  # type: ignore[union-attr]
            written = destination.put(f"{part}/{path}", container.read(member.name), md5)
            yield Done(part, path, *written, str(member))
        return
    with ThreadPoolExecutor(_UPLOADS) as pool:
        for start in range(0, len(tasks), _UPLOADS):
            batch = [(task, container.read(_member(task).name)) for task in tasks[start : start + _UPLOADS]]
            yield from pool.map(lambda each: _row(each[0], destination.put(each[0].name, each[1], each[0].md5)), batch)


def _member(task: Task) -> Member:
    assert isinstance(task.operation, Copy)
    return task.operation.member


def _write(task: Task, competition: Competition, download: Download, destination: Destination) -> Written:
    operation = task.operation
    if isinstance(operation, Content):
        return destination.write(task.name, operation.pieces(), task.md5)
    if isinstance(operation, Derived):
        pieces = competition.function(operation.function)(download, *operation.arguments)
        return destination.write(task.name, pieces, task.md5)
    if isinstance(operation, Archive):
        build = {"zip": _build_zip, "tar": _build_tar, "7z": _build_7z}[operation.kind]
        return build(task, operation, download, destination)
    raise TypeError(f"unknown operation {operation!r}")


def _build_zip(task: Task, archive: Archive, download: Download, destination: Destination) -> Written:
    with destination.open(task.name, task.md5) as sink:
        writer = ZipWriter(sink)
        try:
            for folder in archive.folders:
                writer.add_folder(folder)
            for name, entry, file in _entries(archive, download):
                if file is None:
                    view = download.view(entry.archive).container  # type: ignore[union-attr]
                    assert isinstance(view, ZipContainer)
                    member = entry.name  # type: ignore[union-attr]
                    writer.take_over(name, view.entry(member), view.checked(member))
                else:
                    writer.add(name, file, archive.stored)
        except BaseException:
            writer.abandon()
            raise
        writer.close()
    return sink.written()


def _entries(archive: Archive, download: Download) -> Iterator[tuple[str, Member | Content, Iterable[bytes] | None]]:
    """(name, entry, its bytes); None for bytes that can be taken over compressed.

    Members of containers without random access come in storage order, all others in the declared order.
    """
    sequential: dict[str, dict[str, list[str]]] = defaultdict(lambda: defaultdict(list))
    for name, entry in archive.entries:
        if isinstance(entry, Content):
            yield name, entry, entry.pieces()
            continue
        container = download.view(entry.archive).container
        if not container.random_access:
            sequential[entry.archive][entry.name].append(name)
        elif _can_take_over(container, entry.name, archive):
            yield name, entry, None
        else:
            with container.open(entry.name) as file:
                yield name, entry, _pieces(file)
    for label, wanted in sequential.items():
        for member, file in download.view(label).container.stream(wanted):
            content = _pieces(file) if len(wanted[member]) == 1 else [file.read()]
            for name in wanted[member]:
                yield name, Member(label, member, 0), content


def _can_take_over(container: Any, name: str, archive: Archive) -> bool:
    if archive.kind != "zip" or archive.stored or not isinstance(container, ZipContainer):
        return False
    return container.entry(name).method in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)


def _pieces(file: IO[bytes]) -> Iterator[bytes]:
    while piece := file.read(BLOCK):
        yield piece


def _build_tar(task: Task, archive: Archive, download: Download, destination: Destination) -> Written:
    """A plain tar, members sorted by name, without times and owners: the same bytes whoever builds it.

    Members are put at their computed offsets, so that a source that can only be read from front to back (a .tar.gz)
    is read once, in its own order.
    """
    if not archive.portable:
        raise TypeError(f"{task.name}: tar archives are built of members")
    members = {name: entry for name, entry in sorted(archive.entries) if isinstance(entry, Member)}
    offsets: dict[str, int] = {}
    with tempfile.TemporaryFile(prefix="mlebench-tar-", dir=_scratch(destination)) as scratch:
        for name, entry in members.items():
            info = tarfile.TarInfo(name)
            info.size, info.mode = entry.size, 0o644
            scratch.write(info.tobuf(tarfile.DEFAULT_FORMAT))
            offsets[name] = scratch.tell()
            scratch.seek(-(-entry.size // tarfile.BLOCKSIZE) * tarfile.BLOCKSIZE, os.SEEK_CUR)
        end = scratch.tell() + 2 * tarfile.BLOCKSIZE
        scratch.truncate(-(-end // tarfile.RECORDSIZE) * tarfile.RECORDSIZE)
        for name, _, pieces in _entries(archive, download):
            scratch.seek(offsets[name])
            for piece in pieces or ():
                scratch.write(piece)
        scratch.seek(0)
        return destination.copy(task.name, scratch, task.md5)


def _build_7z(task: Task, archive: Archive, download: Download, destination: Destination) -> Written:
    import py7zr

    with tempfile.TemporaryDirectory(prefix="mlebench-7z-", dir=_scratch(destination)) as scratch:
        path = Path(scratch) / "out.7z"
        with py7zr.SevenZipFile(path, "w") as writer:
            for folder in archive.folders:
                empty = Path(scratch) / "empty"
                empty.mkdir(exist_ok=True)
                writer.write(empty, folder)
            for index, (name, _, pieces) in enumerate(_entries(archive, download)):
                member = Path(scratch) / f"member-{index}"
                with member.open("wb") as file:
                    file.writelines(pieces or ())
                writer.write(member, name)
                member.unlink()
        with path.open("rb") as finished:
            return destination.copy(task.name, finished, task.md5)


def _scratch(destination: Destination) -> str | None:
    """Large scratch files lie beside a local destination: the system's temporary directory may be small memory."""
    if not destination.local:
        return None
    with contextlib.suppress(OSError):
        Path(destination.root).mkdir(parents=True, exist_ok=True)
    return destination.root
