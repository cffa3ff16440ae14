"""Destinations: files written once, hashed while they are written, on any fsspec file system.

Local files appear under their final name by a rename after the last byte; object stores show an object only when its
upload is complete. Either way a reader never sees half a file under a final name.
"""

from __future__ import annotations

import contextlib
import hashlib
import io
import os
import shutil
import zipfile
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from competitions.errors import UserError

BLOCK = 1 << 20


class StoreError(UserError):
    """The store cannot be reached or written."""


@dataclass
class Written:
    """What is known of a file after writing it. `hash` is BLAKE3; `md5` only where it was asked for."""

    bytes: int
    hash: str
    md5: str | None = None


class HashingWriter(io.RawIOBase):
    """Passes bytes on while hashing and counting them; cannot seek, so what is hashed is what is stored."""

    def __init__(self, sink: IO[bytes], md5: bool = False) -> None:
        import blake3

        self._sink = sink
        self._blake3 = blake3.blake3()
        self._md5 = hashlib.md5() if md5 else None
        self.count = 0

    def writable(self) -> bool:
        return True

    def write(self, data: Any) -> int:
        self._blake3.update(data)
        if self._md5:
            self._md5.update(data)
        self._sink.write(data)
        self.count += len(data)
        return len(data)

    def written(self) -> Written:
        """Size and hashes so far."""
        return Written(self.count, self._blake3.hexdigest(), self._md5.hexdigest() if self._md5 else None)


class Destination:
    """A directory of the store that prepared files are written below."""

    def __init__(self, url: str) -> None:
        import fsspec

        self.fs, self.root = fsspec.core.url_to_fs(url)
        self.root = self.root.rstrip("/")
        self.local = self.fs.protocol in ("file", "local") or "file" in self.fs.protocol
        self._folders: set[str] = set()

    def path(self, name: str) -> str:
        """The file system's own path of `name`."""
        return f"{self.root}/{name}"

    def make_folder(self, path: str) -> None:
        """Create the folder of `path` (remembered, so that thousands of files cost one call)."""
        folder = os.path.dirname(path)  # noqa: PTH120  # fsspec paths are strings
        if self.local and folder not in self._folders:
            Path(folder).mkdir(parents=True, exist_ok=True)
            self._folders.add(folder)

    @contextlib.contextmanager
    def open(self, name: str, md5: bool = False) -> Iterator[HashingWriter]:
        """A writer for `name`; the file exists once the block ends without an error, and not before."""
        path = self.path(name)
        self.make_folder(path)
        if not self.local:
            with self.fs.open(path, "wb", block_size=8 * BLOCK) as sink:
                try:
                    yield HashingWriter(sink, md5)
                except BaseException:
                    sink.discard()
                    raise
            return
        partial = f"{path}.{os.getpid()}.partial"
        try:
            with open(partial, "wb", buffering=0) as raw:  # noqa: PTH123
                yield HashingWriter(raw, md5)
            os.replace(partial, path)  # noqa: PTH105
        except BaseException:
            with contextlib.suppress(OSError):
                os.unlink(partial)  # noqa: PTH108
            raise

    def write(self, name: str, pieces: Iterable[bytes], md5: bool = False) -> Written:
        """Write the pieces one after the other."""
        with self.open(name, md5) as writer:
            for piece in pieces:
                writer.write(piece)
        return writer.written()

    def copy(self, name: str, source: IO[bytes], md5: bool = False) -> Written:
        """Write all of a stream."""
        with self.open(name, md5) as writer:
            shutil.copyfileobj(source, writer, BLOCK)
        return writer.written()

    def link(self, name: str, source: Path, md5: bool = False) -> Written | None:
        """A hard link to a plain local file, read once for its hash; None where links are not possible."""
        if not self.local:
            return None
        path = self.path(name)
        self.make_folder(path)
        try:
            with contextlib.suppress(FileNotFoundError):
                os.unlink(path)  # noqa: PTH108
            os.link(source, path)
        except OSError:
            return None
        hasher = HashingWriter(_Nowhere(), md5)
        with source.open("rb") as file:
            shutil.copyfileobj(file, hasher, BLOCK)
        return hasher.written()


class _Nowhere(io.BytesIO):
    def write(self, data: Any) -> int:
        return len(data)


class ZipWriter:
    """A zip archive written front to back, with fixed times, that takes over compressed members as they are."""

    _MODE = 0o644 << 16

    def __init__(self, sink: HashingWriter) -> None:
        self._zip = zipfile.ZipFile(sink, "w", allowZip64=True)

    def _info(self, name: str, method: int) -> zipfile.ZipInfo:
        info = zipfile.ZipInfo(name, (1980, 1, 1, 0, 0, 0))
        info.compress_type, info.external_attr, info.create_system = method, self._MODE, 3
        return info

    def add(self, name: str, pieces: Iterable[bytes], stored: bool) -> None:
        """Compress a new member."""
        method = zipfile.ZIP_STORED if stored else zipfile.ZIP_DEFLATED
        with self._zip.open(self._info(name, method), "w", force_zip64=True) as member:
            for piece in pieces:
                member.write(piece)

    def add_folder(self, name: str) -> None:
        """An entry for an empty folder."""
        info = zipfile.ZipInfo(name.rstrip("/") + "/", (1980, 1, 1, 0, 0, 0))
        info.external_attr = (0o40755 << 16) | 0x10
        self._zip.writestr(info, b"")

    def take_over(self, name: str, source: zipfile.ZipInfo, compressed: IO[bytes]) -> None:
        """A member of another archive without inflating and deflating it: header, then its bytes as stored."""
        info = self._info(name, source.compress_type)
        info.CRC, info.file_size, info.compress_size = source.CRC, source.file_size, source.compress_size
        archive: Any = self._zip  # zipfile has no public way to add bytes that are compressed already
        info.header_offset = archive.fp.tell()
        archive._writecheck(info)
        archive.fp.write(info.FileHeader())
        shutil.copyfileobj(compressed, archive.fp, BLOCK)
        archive.filelist.append(info)
        archive.NameToInfo[info.filename] = info
        archive.start_dir = archive.fp.tell()
        archive._didModify = True

    def close(self) -> None:
        """Write the directory."""
        self._zip.close()
