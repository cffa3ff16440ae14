"""Containers of files (directories and zip, tar and 7z archives), read in place from a local path or any fsspec URL.

A container lists its files with their sizes and opens them. `random_access` says whether files can be opened in any
order at no extra cost. Sequential formats (7z, compressed tar) have to be decompressed up to the wanted member, so
`stream` yields the wanted files in storage order in one pass. This module never writes to a download and unpacks no
archive. The exception is an archive that is compressed inside another one: it is copied to a scratch file, because a
compressed stream cannot be read at an offset.
"""

from __future__ import annotations

import contextlib
import gzip
import io
import lzma
import os
import shutil
import tarfile
import tempfile
import zipfile
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cached_property
from pathlib import Path
from typing import IO, Any, Protocol

from competitions.errors import DownloadError
from competitions.preparing.archives.reading import damaged, reader
from competitions.preparing.archives.zips import ZipContainer

ARCHIVE_SUFFIXES = (".zip", ".7z", ".tar", ".tar.gz", ".tgz")
_BLOCK = 1 << 20
_IN_MEMORY = 64 << 20  # a compressed nested archive up to this size is kept in memory


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


class _Streamed(_Base):
    """An archive of which `stream` is the one way to read members."""

    def stream(self, names: Iterable[str]) -> Iterator[tuple[str, IO[bytes]]]:
        raise NotImplementedError

    def open(self, name: str) -> IO[bytes]:
        for _, file in self.stream([name]):
            return io.BytesIO(file.read())
        raise KeyError(name)


class DirectoryContainer(_Base):
    """A local directory."""

    def __init__(self, root: Path) -> None:
        self.root = root

    @cached_property
    def sizes(self) -> dict[str, int]:
        found: dict[str, int] = {}
        stack = [("", str(self.root))]
        while stack:
            prefix, folder = stack.pop()
            with os.scandir(folder) as entries:
                for entry in entries:
                    if entry.is_dir():
                        stack.append((f"{prefix}{entry.name}/", entry.path))
                    else:
                        found[prefix + entry.name] = entry.stat().st_size
        return dict(sorted(found.items()))

    def open(self, name: str) -> IO[bytes]:
        return (self.root / name).open("rb")


class RemoteDirectory(_Base):
    """A directory on any fsspec file system."""

    def __init__(self, fs: Any, root: str) -> None:
        self.fs, self.root = fs, root.rstrip("/")

    @cached_property
    def sizes(self) -> dict[str, int]:
        found = self.fs.find(self.root, detail=True)
        return {path[len(self.root) + 1 :]: info["size"] for path, info in sorted(found.items())}

    def open(self, name: str) -> IO[bytes]:
        return reader(self.fs.open(f"{self.root}/{name}", "rb"), name)


class TarContainer(_Streamed):
    """A tar archive. A compressed one can only be read from front to back."""

    def __init__(self, opener: Any, label: str) -> None:
        self.opener, self.label = opener, label
        self.random_access = not label.endswith((".gz", ".tgz"))

    @contextlib.contextmanager
    def _open(self) -> Iterator[tarfile.TarFile]:
        with self.opener() as stream:
            if self.random_access:
                with tarfile.open(fileobj=stream, mode="r:") as archive:
                    yield archive
                return
            with gzip.GzipFile(fileobj=stream) as inflated:
                with tarfile.open(fileobj=inflated, mode="r|") as archive:
                    yield archive
                while inflated.read(_BLOCK):  # to the end, where gzip verifies length and CRC
                    pass

    @cached_property
    def sizes(self) -> dict[str, int]:
        try:
            with self._open() as archive:
                return {member.name.removeprefix("./"): member.size for member in archive if member.isfile()}
        except (tarfile.TarError, EOFError, gzip.BadGzipFile, zlib.error) as error:
            damaged(f"{self.label} is not a complete tar archive ({error}); download it again", error)

    def stream(self, names: Iterable[str]) -> Iterator[tuple[str, IO[bytes]]]:
        wanted = set(names)
        with self._open() as archive:
            for member in archive:
                name = member.name.removeprefix("./")
                if name in wanted and member.isfile():
                    file = archive.extractfile(member)
                    if file is not None:
                        yield name, file


class SevenZipContainer(_Streamed):
    """A 7z archive. Its members are compressed together, so they are read in storage order."""

    random_access = False

    def __init__(self, opener: Any, label: str) -> None:
        self.opener, self.label = opener, label

    @contextlib.contextmanager
    def _open(self) -> Iterator[Any]:
        import py7zr

        stream = self.opener()
        try:
            with py7zr.SevenZipFile(stream) as archive:
                yield archive
        except (py7zr.exceptions.ArchiveError, EOFError, lzma.LZMAError) as error:
            damaged(f"{self.label} is not a complete 7z archive ({error}); download it again", error, stream)

    @cached_property
    def sizes(self) -> dict[str, int]:
        with self._open() as archive:
            return {info.filename: info.uncompressed for info in archive.list() if not info.is_directory}

    def stream(self, names: Iterable[str]) -> Iterator[tuple[str, IO[bytes]]]:
        # py7zr passes whole members to a factory. Batches limit how much is on the disk at a time.
        wanted = set(names)
        ordered = [name for name in self.sizes if name in wanted]
        with tempfile.TemporaryDirectory(prefix="mlebench-7z-") as scratch:
            with self._open() as archive:
                archive.extract(path=scratch, targets=ordered)
            for name in ordered:
                path = Path(scratch) / name
                with path.open("rb") as file:
                    yield name, file
                path.unlink()


def open_container(location: str) -> Container:
    """Open the container at a local path or fsspec URL: a directory, or an archive recognised by its suffix.

    Raises `DownloadError` if it does not exist or the archive is damaged.
    """
    if "://" in location and not location.startswith("file://"):
        import fsspec

        fs, path = fsspec.core.url_to_fs(location)
        try:
            found = fs.info(path)["type"]  # `isfile` would take a server that is away for a missing file
        except FileNotFoundError:
            raise DownloadError(f"{location} does not exist; download the competition first") from None
        if found == "directory":
            return RemoteDirectory(fs, path)
        # Zip directories are read backwards in small steps, members forwards in large ones.
        return _archive(path, lambda: reader(fs.open(path, "rb", block_size=4 * _BLOCK), path))
    local = Path(location.removeprefix("file://"))
    if local.is_dir():
        return DirectoryContainer(local)
    if not local.is_file():
        raise DownloadError(f"{local} does not exist; download the competition first")
    return _archive(str(local), lambda: local.open("rb"))


def open_nested(parent: Container, name: str, label: str) -> Container:
    """Open the archive `name` in `parent` without unpacking it."""
    label = str(parent.root / name) if isinstance(parent, DirectoryContainer) else label
    if isinstance(parent, ZipContainer) and label.endswith((".tar.gz", ".tgz")):
        # It is only read from front to back, so decompressing it on the fly avoids a scratch copy of up to 75 GB.
        return _archive(label, lambda: parent.open(name))
    return _archive(label, seekable(parent, name))


def seekable(parent: Container, name: str) -> Callable[[], IO[bytes]]:
    """A function that opens the file `name` as a stream that can seek to any offset at no extra cost.

    A file that is compressed in `parent` is decompressed once, to memory if it is small and to a scratch file
    otherwise. The scratch file exists as long as the function, and its streams must be used one after the other.
    """
    if isinstance(parent, DirectoryContainer | RemoteDirectory):
        return lambda: parent.open(name)
    if isinstance(parent, ZipContainer) and parent.entry(name).method == zipfile.ZIP_STORED:
        return lambda: parent.compressed(name)
    if parent.sizes[name] <= _IN_MEMORY:
        with parent.open(name) as file:
            content = file.read()
        return lambda: io.BytesIO(content)
    scratch = tempfile.TemporaryFile(prefix="mlebench-nested-")  # noqa: SIM115  # lives as long as the opener
    with parent.open(name) as file:
        shutil.copyfileobj(file, scratch, _BLOCK)
    return lambda: _rewound(scratch)


def _rewound(file: IO[bytes]) -> IO[bytes]:
    again = os.fdopen(os.dup(file.fileno()), "rb")  # closing it leaves the scratch file alone
    again.seek(0)
    return again


def _archive(label: str, opener: Any) -> Container:
    if label.endswith(".7z"):
        return SevenZipContainer(opener, label)
    if label.endswith((".tar", ".tar.gz", ".tgz")):
        return TarContainer(opener, label)
    return ZipContainer(opener(), label)
