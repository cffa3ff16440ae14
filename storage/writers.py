"""Destinations: files written once, hashed while they are written, on any fsspec file system.

Local files appear under their final name by a rename after the last byte; object stores show an object only when its
upload is complete. Either way a reader never sees half a file under a final name.
"""

from __future__ import annotations

import contextlib
import hashlib
import io
import os
import secrets
import shutil
import threading
from collections.abc import Iterable, Iterator
from functools import cache
from typing import IO, Any, NamedTuple

from common.cloning import link_or_clone
from common.errors import UserError

BLOCK = 1 << 20


class StoreError(UserError):
    """The store cannot be reached or written."""


class Written(NamedTuple):
    """What is known of a file after writing it. `hash` is BLAKE3; `md5` only where it was asked for."""

    bytes: int
    hash: str
    md5: str | None = None


class HashingWriter(io.RawIOBase):
    """Passes bytes on while hashing and counting them; cannot seek, so what is hashed is what is stored."""

    def __init__(self, sink: IO[bytes], md5: bool = False) -> None:
        self._sink = sink
        self._blake3 = _blake3()()
        self._md5 = hashlib.md5() if md5 else None
        self.count = 0

    def writable(self) -> bool:
        return True

    def write(self, data: Any) -> int:
        self._blake3.update(data)
        if self._md5:
            self._md5.update(data)
        done = self._sink.write(data)
        while done < len(data):  # a raw file may take less than it is given
            done += self._sink.write(memoryview(data)[done:])
        self.count += len(data)
        return len(data)

    def written(self) -> Written:
        """Size and hashes so far."""
        return Written(self.count, self._blake3.hexdigest(), self._md5.hexdigest() if self._md5 else None)


class Destination:
    """A directory of the store that prepared files are written below.

    On this machine files are written under another name first: in the folder `drafts`, which whoever names one removes
    in the end, or beside where they will be. What a killed process leaves is then not among the files of a dataset.
    """

    def __init__(self, url: str, drafts: str = "") -> None:
        import fsspec

        from storage.remote import configure

        configure()
        self.fs, self.root = fsspec.core.url_to_fs(url)
        self.root = self.root.rstrip("/")
        self.local = self.fs.protocol in ("file", "local") or "file" in self.fs.protocol
        self.drafts = f"{self.root}/{drafts}" if drafts and self.local else ""
        self._folders: set[str] = set()

    def path(self, name: str) -> str:
        """The file system's own path of `name`."""
        return f"{self.root}/{name}"

    def draft(self, path: str) -> str:
        """Where to write what will be moved to `path`: another name for every writer, thread and machine."""
        draft = f"{self.drafts or path}{'/' if self.drafts else '.'}{secrets.token_hex(6)}.partial"
        self.make_folder(draft)
        return draft

    def make_folder(self, path: str) -> None:
        """Create the folder of `path` (remembered, so that thousands of files cost one call)."""
        folder = path[: path.rindex("/")]
        if folder not in self._folders and self.local:
            os.makedirs(folder, exist_ok=True)  # noqa: PTH103
            self._folders.add(folder)

    @contextlib.contextmanager
    def open(self, name: str, md5: bool = False, size: int | None = None) -> Iterator[HashingWriter]:
        """A writer for `name`; the file exists once the block ends without an error, and not before.

        `size` is the number of bytes to expect, where that is known and large: S3 takes an object in at most 10,000
        parts, which at the usual 8 MiB end at 80 GB.
        """
        path = self.path(name)
        self.make_folder(path)
        if not self.local:
            sink = self.fs.open(path, "wb", block_size=max(8 * BLOCK, (size or 0) // 9000))
            try:
                yield HashingWriter(sink, md5)
            except BaseException:
                with contextlib.suppress(Exception):
                    sink.discard()
                    sink.closed = True  # closing flushes, which fails after discarding and would hide the error
                raise
            sink.close()
            return
        partial = self.draft(path)
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

    def put(self, name: str, data: bytes, md5: bool = False) -> Written:
        """Write a small file that is in memory, with as few system calls as possible.

        On this machine a new file gets its final name at once and its bytes in one call: of tens of thousands of small
        files each rename would cost as much again. A file that is there already is replaced as `open` does it.
        """
        path = self.path(name)
        self.make_folder(path)
        try:
            if not self.local or not _create(path, data):
                return self.write(name, [data], md5)
        except FileExistsError:
            return self.write(name, [data], md5)
        return _known(data, md5)

    def link(self, name: str, source: str, md5: bool = False) -> Written | None:
        """A plain local file under another name, read once for its hash; None where its bytes must be copied."""
        if not self.local:
            return None
        path = self.path(name)
        self.make_folder(path)
        if not link_or_clone(source, path, lambda: self.draft(path)):
            return None
        block = _block()
        descriptor = os.open(source, os.O_RDONLY)
        try:
            count = os.readv(descriptor, [block])
            if count < len(block):
                return _known(block[:count], md5)
            hasher = HashingWriter(_Nowhere(), md5)
            while count:
                hasher.write(block[:count])
                count = os.readv(descriptor, [block])
        finally:
            os.close(descriptor)
        return hasher.written()


def _create(path: str, data: bytes) -> bool:
    """Write a new file whole, or not at all (False). Raises `FileExistsError` if there is one of that name."""
    descriptor = os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o666)
    try:
        whole = os.write(descriptor, data) == len(data)
    except BaseException:
        os.unlink(path)  # noqa: PTH108
        raise
    finally:
        os.close(descriptor)
    if not whole:
        os.unlink(path)  # noqa: PTH108
    return whole


def _known(data: bytes | memoryview, md5: bool) -> Written:
    return Written(len(data), _blake3()(data).hexdigest(), hashlib.md5(data).hexdigest() if md5 else None)


def _block() -> memoryview:
    """A buffer for all files that a thread reads: of a new one for each, the system would have to clear every page."""
    if not hasattr(_of_thread, "block"):
        _of_thread.block = memoryview(bytearray(BLOCK))
    block: memoryview = _of_thread.block
    return block


_of_thread = threading.local()


@cache
def _blake3() -> Any:
    from blake3 import blake3  # asked for once a file: looking it up each time would show

    return blake3


class _Nowhere(io.BytesIO):
    def write(self, data: Any) -> int:
        return len(data)
