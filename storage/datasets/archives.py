"""Build zip, tar and 7z archives from members of a download."""

from __future__ import annotations

import contextlib
import io
import shutil
import tarfile
import tempfile
import zipfile
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import IO, TypeGuard

import fsspec

from competitions.errors import DownloadError
from competitions.preparing.archives.containers import Container, TarContainer, open_container
from competitions.preparing.archives.zips import Buffer, ZipContainer
from competitions.preparing.declaration import Archive, Content
from competitions.preparing.download import Download, Member
from storage.datasets.zipwriter import ZipWriter
from storage.writers import BLOCK_BYTES, Destination, Written

MADE = "made:"
"""How the `archive` of members begins that are in an archive of a dataset instead of the download; its URL follows."""
MAX_MEMORY_BYTES = 64 << 20  # a member that is needed several times is kept in memory up to this size


Add = Callable[[str, Iterable[Buffer]], object]
"""Adds the member of this name."""


class Begun:
    """An archive with all members that can be read in any order. `add` adds the others; `written` is set at the end."""

    def __init__(self, add: Add) -> None:
        self.add = add
        self.written: Written


def build(name: str, archive: Archive, download: Download, destination: Destination, md5: bool = False) -> Written:
    """Write the archive to `name` below `destination`, reading each member once."""
    containers = Containers(download)
    with begun(name, archive, containers, destination, md5) as begun_archive:
        for label, takers in takers_of(archive, begun_archive, containers).items():
            for _ in Passing(containers[label], takers).stream(()):
                pass
    return begun_archive.written


def begun(
    name: str, archive: Archive, containers: Containers, destination: Destination, md5: bool
) -> contextlib.AbstractContextManager[Begun]:
    """Begin to write the archive to `name` below `destination`. It is complete when the context ends without an error.

    Members of sequential archives (`takers_of`) are still missing, and are added in the order in which they are read.
    """
    of_kind = {"zip": _begun_zip, "tar": _begun_tar, "7z": _begun_7z}[archive.kind]
    return of_kind(name, archive, containers, destination, md5)


Takers = dict[str, list[Callable[[Iterable[Buffer]], object]]]
"""What takes the bytes of a member, by its name."""


def takers_of(archive: Archive, begun_archive: Begun, containers: Containers) -> dict[str, Takers]:
    """The members of sequential archives that an archive takes, by archive."""
    takers: dict[str, Takers] = defaultdict(lambda: defaultdict(list))
    for name, entry in archive.entries:
        if isinstance(entry, Member) and not containers[entry.archive].random_access:
            takers[entry.archive][entry.name].append(partial(begun_archive.add, name))
    return takers


class Passing:
    """A sequential archive that, while it is streamed, passes members to the archives that take them."""

    random_access = False

    def __init__(self, container: Container, takers: Takers) -> None:
        self._container, self._takers = container, takers

    @property
    def sizes(self) -> Mapping[str, int]:
        """The sizes of the archive."""
        return self._container.sizes

    def open(self, name: str) -> IO[bytes]:
        """A stream of a single file."""
        return self._container.open(name)

    def stream(self, names: Iterable[str]) -> Iterator[tuple[str, IO[bytes]]]:
        """Yield the named files in storage order. Read it to the end, so that other archives get their members."""
        requested = set(names)
        for member, file in self._container.stream(requested | self._takers.keys()):
            takers = self._takers.get(member, [])
            if not takers:
                yield member, file
            elif len(takers) == 1 and member not in requested:
                takers[0](_pieces(file))
            else:
                with tempfile.SpooledTemporaryFile(MAX_MEMORY_BYTES, prefix="mlebench-member-") as again:
                    shutil.copyfileobj(file, again, BLOCK_BYTES)
                    for take in takers:
                        again.seek(0)
                        take(_pieces(again))
                    if member in requested:
                        again.seek(0)
                        yield member, again


@contextlib.contextmanager
def _begun_zip(
    target: str, archive: Archive, containers: Containers, destination: Destination, md5: bool
) -> Iterator[Begun]:
    with destination.open(target, md5, _size(archive)) as sink:
        writer = ZipWriter(sink)
        begun_archive = Begun(partial(_add, writer, archive))
        try:
            for folder in archive.folders:
                writer.add_folder(folder)
            _add_all(begun_archive, archive, containers)
            yield begun_archive
        except BaseException:
            writer.abandon()
            raise
        writer.close()
    begun_archive.written = sink.written()


def _add(writer: ZipWriter, archive: Archive, name: str, content: Iterable[Buffer]) -> None:
    if isinstance(content, _Stored):
        writer.copy_compressed(name, content.entry, content)
    else:
        writer.add(name, content, archive.stored)


class _Stored:
    """A member's compressed bytes, which a zip archive can copy unchanged."""

    def __init__(self, container: ZipContainer, member: str) -> None:
        self.entry, self.pieces = container.entry(member), container.checked(member)

    def __iter__(self) -> Iterator[Buffer]:
        return self.pieces


def _add_all(begun_archive: Begun, archive: Archive, containers: Containers) -> None:
    """Add the entries in their order, except members of sequential archives."""
    for name, entry in archive.entries:
        if isinstance(entry, Content):
            begun_archive.add(name, entry.pieces())
            continue
        container = containers[entry.archive]
        if not container.random_access:
            continue
        if _can_copy_compressed(container, entry.name, archive):
            begun_archive.add(name, _Stored(container, entry.name))
        else:
            with container.open(entry.name) as file:
                begun_archive.add(name, _pieces(file))


class Containers(dict[str, Container]):
    """The containers of a download by the `archive` of members, each looked up once."""

    def __init__(self, download: Download) -> None:
        super().__init__()
        self._download = download

    def __missing__(self, label: str) -> Container:
        is_made = label.startswith(MADE)
        self[label] = _open_made(label.removeprefix(MADE)) if is_made else self._download.view(label).container
        return self[label]


def _open_made(url: str) -> Container:
    """A zip or tar archive that this module built; tar archives are not compressed, whatever their suffix."""
    if url.endswith(".zip"):
        return open_container(url)
    fs, path = fsspec.core.url_to_fs(url)
    return TarContainer(lambda: fs.open(path, "rb", block_size=4 * BLOCK_BYTES), f"{path}.tar")


def _can_copy_compressed(container: Container, name: str, archive: Archive) -> TypeGuard[ZipContainer]:
    if archive.kind != "zip" or archive.stored or not isinstance(container, ZipContainer):
        return False
    return container.entry(name).method in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)


def _pieces(file: IO[bytes]) -> Iterator[bytes]:
    while piece := file.read(BLOCK_BYTES):
        yield piece


@contextlib.contextmanager
def _begun_tar(
    target: str, archive: Archive, containers: Containers, destination: Destination, md5: bool
) -> Iterator[Begun]:
    """Write a reproducible uncompressed tar archive: members sorted by name, without times and owners.

    It is written from front to back. If a member is in a sequential source such as a .tar.gz, which is read once in its
    own order, members are first written to computed offsets of a local file.
    """
    if not archive.portable:
        raise TypeError(f"{target}: tar archives can only contain members")
    members = {name: entry for name, entry in sorted(archive.entries) if isinstance(entry, Member)}
    ordered = replace(archive, entries=tuple(members.items()))
    offsets, end = {}, 0
    for name, entry in members.items():
        offsets[name] = end
        end += len(_tar_header(name, entry)) + entry.size + -entry.size % tarfile.BLOCKSIZE
    if all(containers[label].random_access for label in {entry.archive for entry in members.values()}):
        with destination.open(target, md5, _size(archive)) as sink:
            buffered = io.BufferedWriter(sink, BLOCK_BYTES)  # combines small members into large writes
            begun_archive = Begun(lambda name, pieces: _write_tar_member(buffered, name, members[name], pieces))
            _add_all(begun_archive, ordered, containers)
            yield begun_archive
            buffered.write(bytes(_tar_size(end) - end))
            buffered.flush()
            buffered.detach()
        begun_archive.written = sink.written()
        return
    with tempfile.TemporaryDirectory(prefix="mlebench-tar-", dir=_scratch(destination)) as scratch:
        path = Path(scratch) / "out.tar"
        with path.open("wb") as file:
            file.truncate(_tar_size(end))

            def add(name: str, pieces: Iterable[Buffer]) -> None:
                file.seek(offsets[name])
                _write_tar_member(file, name, members[name], pieces)

            begun_archive = Begun(add)
            _add_all(begun_archive, ordered, containers)
            yield begun_archive
        begun_archive.written = destination.move(target, str(path), md5)


def _write_tar_member(file: IO[bytes], name: str, member: Member, pieces: Iterable[Buffer]) -> None:
    """Write header, content and padding. Raises `DownloadError` for a wrong size."""
    file.write(_tar_header(name, member))
    size = sum(file.write(piece) for piece in pieces)
    if size != member.size:
        raise DownloadError(f"{member} has {size:,} bytes instead of {member.size:,}; download it again")
    file.write(bytes(-size % tarfile.BLOCKSIZE))


def _tar_header(name: str, member: Member) -> bytes:
    info = tarfile.TarInfo(name)
    info.size, info.mode = member.size, 0o644
    return info.tobuf(tarfile.DEFAULT_FORMAT)


def _tar_size(end: int) -> int:
    """Size of an archive whose last member ends at `end`."""
    return -(-(end + 2 * tarfile.BLOCKSIZE) // tarfile.RECORDSIZE) * tarfile.RECORDSIZE


@contextlib.contextmanager
def _begun_7z(
    target: str, archive: Archive, containers: Containers, destination: Destination, md5: bool
) -> Iterator[Begun]:
    import py7zr

    with tempfile.TemporaryDirectory(prefix="mlebench-7z-", dir=_scratch(destination)) as scratch:
        path, member = Path(scratch) / "out.7z", Path(scratch) / "member"
        with py7zr.SevenZipFile(path, "w") as writer:
            for folder in archive.folders:
                empty = Path(scratch) / "empty"
                empty.mkdir(exist_ok=True)
                writer.write(empty, folder)

            def add(name: str, pieces: Iterable[Buffer]) -> None:
                with member.open("wb") as file:
                    file.writelines(pieces)
                writer.write(member, name)
                member.unlink()

            begun_archive = Begun(add)
            _add_all(begun_archive, archive, containers)
            yield begun_archive
        begun_archive.written = destination.move(target, str(path), md5)


def _size(archive: Archive) -> int:
    """The likely number of bytes of an archive: the sum of its members, because most of them do not compress."""
    return sum(getattr(entry, "size", 0) for _, entry in archive.entries)


def _scratch(destination: Destination) -> str | None:
    """Folder for large temporary files, next to a local destination: that of the system may be in memory."""
    if not destination.local:
        return None
    folder = destination.drafts or destination.root
    with contextlib.suppress(OSError):
        Path(folder).mkdir(parents=True, exist_ok=True)
    return folder
