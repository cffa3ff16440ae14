"""Build zip, tar and 7z archives from members of a download."""

from __future__ import annotations

import contextlib
import io
import shutil
import tarfile
import tempfile
import zipfile
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import IO, TypeGuard

import fsspec

from competitions.errors import DownloadError
from competitions.preparing.archives.containers import Container, TarContainer, open_container
from competitions.preparing.archives.zips import Buffer, ZipContainer
from competitions.preparing.declaration import Archive, Content
from competitions.preparing.download import Download, Member
from storage.datasets.zipwriter import ZipWriter
from storage.writers import BLOCK, Destination, Written

MADE = "made:"
"""How the `archive` of members begins that are in an archive of a dataset instead of the download; its URL follows."""
_IN_MEMORY = 64 << 20  # a member that is needed several times is kept in memory up to this size


def build(name: str, archive: Archive, download: Download, destination: Destination, md5: bool = False) -> Written:
    """Write the archive to `name` below `destination`, reading each member once."""
    of_kind = {"zip": _build_zip, "tar": _build_tar, "7z": _build_7z}[archive.kind]
    return of_kind(name, archive, download, destination, md5)


def _build_zip(target: str, archive: Archive, download: Download, destination: Destination, md5: bool) -> Written:
    containers = _Containers(download)
    source, members = _source_of_small(archive, containers)
    with destination.open(target, md5, _size(archive)) as sink:
        writer = ZipWriter(sink)
        try:
            for folder in archive.folders:
                writer.add_folder(folder)
            if source:
                names = (name for name, _ in archive.entries)
                writer.copy_small(zip(names, source.checked_small(members), strict=True))
            else:
                _add_entries(writer, archive, containers)
        except BaseException:
            writer.abandon()
            raise
        writer.close()
    return sink.written()


def _add_entries(writer: ZipWriter, archive: Archive, containers: _Containers) -> None:
    for name, content in _entries(archive, containers):
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


def _source_of_small(archive: Archive, containers: _Containers) -> tuple[ZipContainer | None, list[str]]:
    """The zip archive of which all entries are small members, if there is one, and the names of these."""
    members = [entry for _, entry in archive.entries if isinstance(entry, Member)]
    labels = {member.archive for member in members}
    if archive.stored or len(members) < len(archive.entries) or len(labels) != 1:
        return None, []
    container, names = containers[labels.pop()], [member.name for member in members]
    return (container, names) if isinstance(container, ZipContainer) and container.are_small(names) else (None, [])


def _entries(archive: Archive, containers: _Containers) -> Iterator[tuple[str, Iterable[Buffer]]]:
    """Yield (name, bytes) of each entry.

    Members of containers without random access come in storage order, all others in the declared order.
    """
    sequential: dict[str, dict[str, list[str]]] = defaultdict(lambda: defaultdict(list))
    for name, entry in archive.entries:
        if isinstance(entry, Content):
            yield name, entry.pieces()
            continue
        label, member, _ = entry
        container = containers[label]
        if not container.random_access:
            sequential[label][member].append(name)
        elif _can_copy_compressed(container, member, archive):
            yield name, _Stored(container, member)
        else:
            with container.open(member) as file:
                yield name, _pieces(file)
    for label, wanted in sequential.items():
        for member, file in containers[label].stream(wanted):
            if len(wanted[member]) == 1:
                yield wanted[member][0], _pieces(file)
                continue
            with tempfile.SpooledTemporaryFile(_IN_MEMORY, prefix="mlebench-member-") as again:
                shutil.copyfileobj(file, again, BLOCK)
                for name in wanted[member]:
                    again.seek(0)
                    yield name, _pieces(again)


class _Containers(dict[str, Container]):
    """The containers of a download by the `archive` of members, each looked up once."""

    def __init__(self, download: Download) -> None:
        super().__init__()
        self._download = download

    def __missing__(self, label: str) -> Container:
        made = label.startswith(MADE)
        self[label] = _open_made(label.removeprefix(MADE)) if made else self._download.view(label).container
        return self[label]


def _open_made(url: str) -> Container:
    """A zip or tar archive that this module built; tar archives are not compressed, whatever their suffix."""
    if url.endswith(".zip"):
        return open_container(url)
    fs, path = fsspec.core.url_to_fs(url)
    return TarContainer(lambda: fs.open(path, "rb", block_size=4 * BLOCK), f"{path}.tar")


def _can_copy_compressed(container: Container, name: str, archive: Archive) -> TypeGuard[ZipContainer]:
    if archive.kind != "zip" or archive.stored or not isinstance(container, ZipContainer):
        return False
    return container.entry(name).method in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)


def _pieces(file: IO[bytes]) -> Iterator[bytes]:
    while piece := file.read(BLOCK):
        yield piece


def _build_tar(target: str, archive: Archive, download: Download, destination: Destination, md5: bool) -> Written:
    """Build a reproducible uncompressed tar archive: members sorted by name, without times and owners.

    It is written from front to back. Only if a member is in a sequential source such as a .tar.gz, which is read once
    in its own order, members are written to computed offsets of a local file first.
    """
    if not archive.portable:
        raise TypeError(f"{target}: tar archives can only contain members")
    members = {name: entry for name, entry in sorted(archive.entries) if isinstance(entry, Member)}
    ordered = replace(archive, entries=tuple(members.items()))
    containers = _Containers(download)
    if all(containers[label].random_access for label in {entry.archive for entry in members.values()}):
        with destination.open(target, md5, _size(archive)) as sink:
            buffered = io.BufferedWriter(sink, BLOCK)  # combines small members into large writes
            end = 0
            for name, pieces in _entries(ordered, containers):
                end += _write_tar_member(buffered, name, members[name], pieces)
            buffered.write(bytes(_tar_size(end) - end))
            buffered.flush()
            buffered.detach()
        return sink.written()
    offsets, end = {}, 0
    for name, entry in members.items():
        offsets[name] = end
        end += len(_tar_header(name, entry)) + entry.size + -entry.size % tarfile.BLOCKSIZE
    with tempfile.TemporaryDirectory(prefix="mlebench-tar-", dir=_scratch(destination)) as scratch:
        path = Path(scratch) / "out.tar"
        with path.open("wb") as file:
            file.truncate(_tar_size(end))
            for name, pieces in _entries(ordered, containers):
                file.seek(offsets[name])
                _write_tar_member(file, name, members[name], pieces)
        return destination.move(target, str(path), md5)


def _write_tar_member(file: IO[bytes], name: str, member: Member, pieces: Iterable[Buffer]) -> int:
    """Write header, content and padding; returns the number of bytes. Raises `DownloadError` for a wrong size."""
    header = _tar_header(name, member)
    file.write(header)
    size = sum(file.write(piece) for piece in pieces)
    if size != member.size:
        raise DownloadError(f"{member} has {size:,} bytes instead of {member.size:,}; download it again")
    return len(header) + size + file.write(bytes(-size % tarfile.BLOCKSIZE))


def _tar_header(name: str, member: Member) -> bytes:
    info = tarfile.TarInfo(name)
    info.size, info.mode = member.size, 0o644
    return info.tobuf(tarfile.DEFAULT_FORMAT)


def _tar_size(end: int) -> int:
    """Size of an archive of which the last member ends at `end`."""
    return -(-(end + 2 * tarfile.BLOCKSIZE) // tarfile.RECORDSIZE) * tarfile.RECORDSIZE


def _build_7z(target: str, archive: Archive, download: Download, destination: Destination, md5: bool) -> Written:
    import py7zr

    with tempfile.TemporaryDirectory(prefix="mlebench-7z-", dir=_scratch(destination)) as scratch:
        path = Path(scratch) / "out.7z"
        with py7zr.SevenZipFile(path, "w") as writer:
            for folder in archive.folders:
                empty = Path(scratch) / "empty"
                empty.mkdir(exist_ok=True)
                writer.write(empty, folder)
            for index, (name, pieces) in enumerate(_entries(archive, _Containers(download))):
                member = Path(scratch) / f"member-{index}"
                with member.open("wb") as file:
                    file.writelines(pieces)
                writer.write(member, name)
                member.unlink()
        return destination.move(target, str(path), md5)


def _size(archive: Archive) -> int:
    """The likely number of bytes of an archive: the sum of its members, as most of them do not compress."""
    return sum(getattr(entry, "size", 0) for _, entry in archive.entries)


def _scratch(destination: Destination) -> str | None:
    """Folder for large temporary files, next to a local destination: the system's may be a small memory disk."""
    if not destination.local:
        return None
    folder = destination.drafts or destination.root
    with contextlib.suppress(OSError):
        Path(folder).mkdir(parents=True, exist_ok=True)
    return folder
