"""Containers of files (directories and zip, tar and 7z archives), read in place from a local path or any fsspec URL.

A container lists its files with their sizes and opens them. `random_access` says whether files can be opened in any
order at no extra cost. Sequential formats (7z, compressed tar) have to be decompressed up to the wanted member, so
`stream` yields the wanted files in storage order in one pass. This module never writes to a download and unpacks no
archive. Memory does not depend on the size of a file.
"""

from __future__ import annotations

import contextlib
import gzip
import io
import os
import tarfile
import threading
import zlib
from collections.abc import Iterable, Iterator, Mapping
from functools import cached_property
from pathlib import Path
from typing import IO, Any, Protocol

from common.locations import local_path
from competitions.errors import DownloadError
from competitions.preparing.archives.formats import HEAD_BYTES, recognised
from competitions.preparing.archives.listing import files_below
from competitions.preparing.archives.reading import damaged, reader
from competitions.preparing.archives.window import Window
from competitions.preparing.archives.zips import NotAZip, ZipContainer

_BLOCK = 1 << 20
IN_MEMORY = 64 << 20
"""A compressed nested archive, or a file of a sequential archive, with at most as many bytes is kept in memory."""


class Container(Protocol):
    """A read-only collection of named files."""

    random_access: bool

    @property
    def sizes(self) -> Mapping[str, int]:
        """Size in bytes of each file by POSIX path, in storage order."""
        ...

    def open(self, name: str) -> IO[bytes]:
        """A binary stream of one file."""
        ...

    def stream(self, names: Iterable[str]) -> Iterator[tuple[str, IO[bytes]]]:
        """Yield the named files in storage order. Each stream is valid until the next one is requested."""
        ...


class _Base:
    random_access = True

    def open(self, name: str) -> IO[bytes]:
        raise NotImplementedError

    def stream(self, names: Iterable[str]) -> Iterator[tuple[str, IO[bytes]]]:
        for name in names:
            with self.open(name) as file:
                yield name, file


class DirectoryContainer(_Base):
    """A local directory."""

    def __init__(self, root: Path) -> None:
        self.root = root

    @cached_property
    def sizes(self) -> dict[str, int]:
        sizes: dict[str, int] = {}
        stack = [("", str(self.root))]
        while stack:
            prefix, folder = stack.pop()
            with os.scandir(folder) as entries:
                for entry in entries:
                    if entry.is_dir():
                        stack.append((f"{prefix}{entry.name}/", entry.path))
                    else:
                        sizes[prefix + entry.name] = entry.stat().st_size
        return dict(sorted(sizes.items()))

    def open(self, name: str) -> IO[bytes]:
        return (self.root / name).open("rb")


class RemoteDirectory(_Base):
    """A directory on any fsspec file system."""

    def __init__(self, fs: Any, root: str) -> None:
        self.fs, self.root = fs, root.rstrip("/")

    @cached_property
    def sizes(self) -> dict[str, int]:
        return dict(files_below(self.fs, self.root))

    def open(self, name: str) -> IO[bytes]:
        return reader(self.fs.open(f"{self.root}/{name}", "rb"), name)


class TarContainer(_Base):
    """A tar archive. It is scanned once. A compressed archive can only be read from front to back."""

    def __init__(self, opener: Any, label: str, *, compressed: bool = False) -> None:
        self.opener, self.label = opener, label
        self.random_access = not compressed
        self._lock = threading.Lock()
        self._starts: dict[str, int] = {}
        self.most: int | None = None
        """Bytes to which a compressed archive may expand; see `require_bounded`."""
        self._sparse: dict[str, tarfile.TarInfo] = {}

    @contextlib.contextmanager
    def _open(self) -> Iterator[tarfile.TarFile]:
        with self.opener() as stream:
            if self.random_access:
                with tarfile.open(fileobj=stream, mode="r:") as archive:
                    yield archive
                return
            with gzip.GzipFile(fileobj=stream) as inflated:
                bounded: Any = _Bounded(inflated, self.most, self.label)
                with tarfile.open(fileobj=bounded, mode="r|") as archive:
                    yield archive
                while bounded.read(_BLOCK):  # at the end, gzip verifies length and CRC
                    pass

    @cached_property
    def sizes(self) -> dict[str, int]:
        sizes: dict[str, int] = {}
        try:
            with self._open() as archive:
                for name, member in _members(archive):
                    sizes[name] = member.size
                    if self.most is not None and member.size > self.most:  # before it is decompressed
                        raise _too_large(self.label, name, member.size, self.most)
                    self._starts[name] = member.offset_data
                    if member.sparse is not None:
                        self._sparse[name] = member
        except (tarfile.TarError, EOFError, gzip.BadGzipFile, zlib.error) as error:
            damaged(f"{self.label} is not a complete tar archive ({error}); download it again", error)
        return sizes

    def open(self, name: str) -> IO[bytes]:
        if not self.random_access:
            return _member_of(self, name)
        size = self.sizes[name]
        if name in self._sparse:
            archive = tarfile.open(fileobj=self.opener(), mode="r:")  # noqa: SIM115  # the member reads from it
            file = archive.extractfile(self._sparse[name])
            assert file is not None
            return file
        stream: IO[bytes] = io.BufferedReader(Window(self._shared, self._starts[name], size, self._lock), _BLOCK)
        return stream

    @cached_property
    def _shared(self) -> IO[bytes]:
        """One stream for all members, because opening a remote archive takes a request and a read-ahead of its own."""
        stream: IO[bytes] = self.opener()
        return stream

    def stream(self, names: Iterable[str]) -> Iterator[tuple[str, IO[bytes]]]:
        wanted = set(names)
        if self.random_access:
            sizes = self.sizes
            present = (member_name for member_name in wanted if member_name in sizes)
            yield from super().stream(sorted(present, key=self._starts.__getitem__))
            return
        with self._open() as archive:
            for name, member in _members(archive):
                if name in wanted:
                    file = archive.extractfile(member)
                    if file is not None:
                        yield name, file


def _members(archive: tarfile.TarFile) -> Iterator[tuple[str, tarfile.TarInfo]]:
    """Yield the files of an archive, which would otherwise keep an object of each in memory."""
    while (member := archive.next()) is not None:
        archive.members.clear()  # type: ignore[attr-defined]  # all members that were read so far
        if member.isfile():
            yield member.name.removeprefix("./"), member


class _Bounded:
    """A stream that raises `DownloadError` after `max_bytes`: a compressed tar archive does not state its size."""

    def __init__(self, stream: Any, max_bytes: int | None, label: str) -> None:
        self._stream, self._most, self._label, self._count = stream, max_bytes, label, 0

    def read(self, size: int = -1) -> bytes:
        data: bytes = self._stream.read(size)
        self._count += len(data)
        if self._most is not None and self._count > self._most:
            raise _too_large(self._label, None, self._count, self._most)
        return data


def require_bounded(container: Container, most: int) -> None:
    """Raise `DownloadError` if an archive expands to more than `most` bytes, by its directory or when it is read.

    Members are read up to the size that the directory of the archive states. A directory of files is not limited.
    """
    if isinstance(container, DirectoryContainer | RemoteDirectory):
        return
    if isinstance(container, TarContainer):
        container.most = most
    sizes = container.sizes
    if (total := sum(sizes.values())) > most:
        raise _too_large(getattr(container, "label", ""), max(sizes, key=sizes.__getitem__), total, most)


def _too_large(label: str, name: str | None, size: int, limit: int) -> DownloadError:
    largest = f", above all {name}" if name else ""
    return DownloadError(
        f"{label} expands to {size:,} bytes or more{largest}; the published download cannot be larger than {limit:,} "
        "(64 times size_bytes in competition.yaml, and a GiB): download it again, or correct size_bytes"
    )


class SevenZipContainer(_Base):
    """A 7z archive. Its members are compressed together, so they are read in storage order."""

    random_access = False

    def __init__(self, opener: Any, label: str) -> None:
        self.opener, self.label = opener, label

    @contextlib.contextmanager
    def _open(self) -> Iterator[Any]:
        import py7zr

        from competitions.preparing.archives.sevenzip import ERRORS

        stream = self.opener()
        try:
            with py7zr.SevenZipFile(stream) as archive:
                yield archive
        except ERRORS as error:
            damaged(f"{self.label} is not a complete 7z archive ({error}); download it again", error, stream)

    @cached_property
    def sizes(self) -> dict[str, int]:
        with self._open() as archive:
            return {info.filename: info.uncompressed for info in archive.list() if not info.is_directory}

    def open(self, name: str) -> IO[bytes]:
        return _member_of(self, name)

    def stream(self, names: Iterable[str]) -> Iterator[tuple[str, IO[bytes]]]:
        from competitions.preparing.archives.sevenzip import stream

        wanted = set(names)
        return stream(self.opener, self.label, [name for name in self.sizes if name in wanted])


def _member_of(container: Container, name: str) -> IO[bytes]:
    """A file of a sequential archive: in memory if it is small, otherwise as a stream that can only be read forward."""
    members: Any = container.stream([name])
    for _, file in members:
        if container.sizes[name] > IN_MEMORY:
            stream: IO[bytes] = io.BufferedReader(_Forward(file, members), _BLOCK)
            return stream
        content = io.BytesIO(file.read())
        members.close()
        return content
    raise KeyError(name)


class _Forward(io.RawIOBase):
    """A file that comes from an iterator, which is ended when the file is closed."""

    def __init__(self, file: IO[bytes], members: Any) -> None:
        self._file, self._members = file, members

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        data = self._file.read(len(buffer))
        buffer[: len(data)] = data
        return len(data)

    def close(self) -> None:
        if not self.closed:
            self._members.close()
        super().close()


def open_container(location: str) -> Container:
    """Open the container at a local path or fsspec URL: a directory, or an archive whatever its name says.

    Raises `DownloadError` if it does not exist, is no archive, or is damaged.
    """
    local = local_path(location)
    if local is None:
        import fsspec

        fs, path = fsspec.core.url_to_fs(location)
        try:
            kind = fs.info(path)["type"]  # `isfile` is also False if the server cannot be reached
        except FileNotFoundError:
            raise DownloadError(f"{location} does not exist; download the competition first") from None
        if kind == "directory":
            return RemoteDirectory(fs, path)
        # Imported here, because it imports fsspec.
        from competitions.preparing.archives.readahead import ReadAhead

        return _open_any(
            path, lambda: reader(fs.open(path, "rb", block_size=4 * _BLOCK, cache_type=ReadAhead.name), path)
        )
    if local.is_dir():
        return DirectoryContainer(local)
    if not local.is_file():
        raise DownloadError(f"{local} does not exist; download the competition first")
    return _open_any(str(local), lambda: local.open("rb"))


def _open_any(label: str, opener: Any) -> Container:
    """The container in an archive whose name may say another format than it has."""
    if label.lower().endswith(".zip"):
        with contextlib.suppress(NotAZip):
            archive = ZipContainer(opener(), label)
            if archive.begins:  # another archive may end with one
                return archive
    with opener() as stream:
        suffix = recognised(stream.read(HEAD_BYTES), label)
    return open_archive(label, opener, suffix)


def open_archive(label: str, opener: Any, suffix: str = "") -> Container:
    """The container in the archive that `opener` opens; its format is that of `suffix`, by default that of `label`."""
    suffix = (suffix or label).lower()
    if suffix.endswith(".7z"):
        return SevenZipContainer(opener, label)
    if suffix.endswith((".tar", ".tar.gz", ".tgz")):
        return TarContainer(opener, label, compressed=not suffix.endswith(".tar"))
    return ZipContainer(opener(), label)
