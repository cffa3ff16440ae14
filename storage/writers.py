"""Write files below a root on any fsspec file system, and hash them at the same time.

A local file is renamed to its final name after the last byte, and an object store shows an object only when its upload
is complete. In both cases readers never see an incomplete file under its final name.
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
from common.locations import local_path
from common.syncing import sync_file_system
from storage.multipart import MultipartWriter, part_size
from storage.remote import remove_from_s3, set_fsspec_defaults

BLOCK_BYTES = 1 << 20
MAX_WHOLE_BYTES = 16 << 20
"""Files up to this size are uploaded from memory with one request."""
MAX_BYTES_IN_FLIGHT = 64 << 20
"""Maximum number of bytes of such files that are being uploaded at a time."""
MAX_TRANSFERS = 32
"""Maximum number of files that are uploaded or fetched at a time; most of the time they wait for the server."""


class StoreError(UserError):
    """The store cannot be reached or written to. Its kind in the table of causes is that of its cause."""


class Written(NamedTuple):
    """Size and hashes of a written file. `hash` is BLAKE3; `md5` is None unless it was requested."""

    bytes: int
    hash: str
    md5: str | None = None


def read_whole(fs: Any, path: str) -> bytes:
    """The content of a file. Raises `FileNotFoundError`.

    On S3 this takes one request. By default, s3fs would request the size first, and list the folder of a missing file.
    """
    content: bytes = fs.cat_file(path, max_concurrency=1) if "s3" in fs.protocol else fs.cat_file(path)
    return content


class HashingWriter(io.RawIOBase):
    """Hashes and counts bytes while writing them to another file. It cannot seek, so the hash is that of the file."""

    def __init__(self, sink: IO[bytes], md5: bool = False) -> None:
        self._sink = sink
        self._blake3 = _blake3()()
        self._md5 = hashlib.md5() if md5 else None
        self.count = 0

    def writable(self) -> bool:
        return True

    def write(self, data: Any) -> int:
        if self._md5:
            self._md5.update(data)
        self._blake3.update(data)
        done = self._sink.write(data)
        while done < len(data):  # a raw file may write less than requested
            done += self._sink.write(memoryview(data)[done:])
        self.count += len(data)
        return len(data)

    def written(self) -> Written:
        """Size and hashes so far."""
        return Written(self.count, self._blake3.hexdigest(), self._md5.hexdigest() if self._md5 else None)


class Destination:
    """A directory, given as a URL, to which files are written.

    On a local file system, files are first written under a temporary name, either in the folder `drafts`, which the
    caller has to remove, or next to the final path. With `drafts`, incomplete files of a killed process never become
    part of a dataset.
    """

    def __init__(self, url: str, drafts: str = "") -> None:
        import fsspec

        set_fsspec_defaults()
        path = local_path(url)
        if path is None:
            self.fs, root = fsspec.core.url_to_fs(url)
        else:  # fsspec would not decode %20, and would find a pattern or a chain of file systems in some names
            self.fs, root = fsspec.filesystem("file"), str(path.absolute())
        self.root: str = root.rstrip("/")
        self.local = self.fs.protocol in ("file", "local") or "file" in self.fs.protocol
        self.drafts = f"{self.root}/{drafts}" if drafts and self.local else ""
        self._folders: set[str] = set()

    def path(self, name: str) -> str:
        """The path of `name` on the file system."""
        return f"{self.root}/{name}"

    def draft(self, path: str) -> str:
        """A temporary name for a file that will be moved to `path`, unique across threads, processes and machines."""
        # The name of the file with a suffix may be too long. The draft is hidden, so that it is not part of a table.
        draft = f"{self.drafts or path.rpartition('/')[0]}/.{secrets.token_hex(6)}.partial"
        self.make_folder(draft)
        return draft

    def make_folder(self, path: str) -> None:
        """Create the folder of `path`, only once for all files in it."""
        folder = path[: path.rindex("/")]
        if folder not in self._folders and self.local:
            _make_folders(folder)
            self._folders.add(folder)

    def forget(self, path: str) -> None:
        """Forget that folders were created at or below a path, which is removed."""
        self._folders = {folder for folder in self._folders if folder != path and not folder.startswith(f"{path}/")}

    @contextlib.contextmanager
    def open(self, name: str, md5: bool = False, size: int | None = None) -> Iterator[HashingWriter]:
        """Yield a writer for `name`. The file exists after the block has ended without an error.

        `size` is the likely number of bytes, see `storage.multipart.MultipartWriter`.
        """
        path = self.path(name)
        self.make_folder(path)
        if not self.local:
            sink = self._remote(path, size or 0)
            try:
                yield HashingWriter(sink, md5)
                sink.close()
            except BaseException:
                with contextlib.suppress(Exception):
                    sink.discard()
                    sink.closed = True  # closing would flush, which fails after discarding and would hide the error
                raise
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

    def _remote(self, path: str, size: int) -> Any:
        if "s3" in self.fs.protocol:
            return MultipartWriter(self.fs, path, size)
        return self.fs.open(path, "wb", block_size=part_size(1, size))

    def write(self, name: str, pieces: Iterable[bytes], md5: bool = False, size: int | None = None) -> Written:
        """Write a file from these pieces."""
        with self.open(name, md5, size) as writer:
            for piece in pieces:
                writer.write(piece)
        return writer.written()

    def copy(self, name: str, source: IO[bytes], md5: bool = False, size: int | None = None) -> Written:
        """Write a file from the rest of a stream."""
        with self.open(name, md5, size) as writer:
            shutil.copyfileobj(source, writer, BLOCK_BYTES)
        return writer.written()

    def put(self, name: str, data: bytes, md5: bool = False) -> Written:
        """Write a small file with one request, or with as few system calls as possible.

        A new local file is created under its final name and written in one call, because renaming would double the time
        for tens of thousands of small files. An existing file is replaced as in `open`.
        """
        path = self.path(name)
        if not self.local:
            self.fs.pipe_file(path, data)
            return _hashed(data, md5)
        self.make_folder(path)
        if not _write_new(path, data):
            return self.write(name, [data], md5)
        return _hashed(data, md5)

    def remove(self, name: str) -> None:
        """Remove a file or folder if it exists."""
        path = self.path(name)
        with contextlib.suppress(FileNotFoundError):  # it may have been removed in the meantime
            if "s3" in self.fs.protocol:
                remove_from_s3(self.fs, path)
            elif self.fs.exists(path):
                self.fs.rm(path, recursive=True)
        self.forget(path)

    def sync(self) -> None:
        """Flush everything that this host has written here to the disk. Object stores need no flush."""
        if self.local:
            with contextlib.suppress(FileNotFoundError):  # nothing was written yet
                sync_file_system(self.root)

    def move(self, name: str, source: str, md5: bool = False) -> Written:
        """Turn a finished local file into `name`. On a local file system it is renamed, so its bytes are only read."""
        with open(source, "rb") as file:  # noqa: PTH123
            if not self.local or os.fstat(file.fileno()).st_dev != os.stat(self.root).st_dev:  # noqa: PTH116
                return self.copy(name, file, md5, os.fstat(file.fileno()).st_size)
            hasher = HashingWriter(NullSink(), md5)
            shutil.copyfileobj(file, hasher, BLOCK_BYTES)
        path = self.path(name)
        self.make_folder(path)
        os.replace(source, path)  # noqa: PTH105
        return hasher.written()

    def link(self, name: str, source: str, md5: bool = False) -> Written | None:
        """Link or clone a local file, and read it once for its hash; None if its bytes have to be copied."""
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
                return _hashed(block[:count], md5)
            hasher = HashingWriter(NullSink(), md5)
            while count:
                hasher.write(block[:count])
                count = os.readv(descriptor, [block])
        finally:
            os.close(descriptor)
        return hasher.written()

    def take(self, name: str, source: str) -> None:
        """Give a file of the same file system a second name, or copy it on the server, without reading its bytes here.

        `source` is a path on the file system. Raises `FileNotFoundError`.
        """
        path = self.path(name)
        if not self.local:
            self.fs.cp_file(source, path)
            return
        self.make_folder(path)
        if not link_or_clone(source, path, lambda: self.draft(path)):
            partial = self.draft(path)
            shutil.copyfile(source, partial)
            os.replace(partial, path)  # noqa: PTH105


def _make_folders(folder: str) -> None:
    """Create a folder and its parents, unless they exist. The parent usually exists."""
    try:
        os.mkdir(folder)  # noqa: PTH102
    except FileExistsError:
        if not os.path.isdir(folder):  # noqa: PTH112
            raise
    except OSError:  # for existing folders, some systems have another error than EEXIST, such as EROFS
        os.makedirs(folder, exist_ok=True)  # noqa: PTH103


def _write_new(path: str, data: bytes) -> bool:
    """Write a complete new file in one call. Returns False, and leaves no file, if it exists or does not fit."""
    try:
        descriptor = os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o666)
    except FileExistsError:
        return False
    try:
        is_complete = os.write(descriptor, data) == len(data)
    except BaseException:
        os.unlink(path)  # noqa: PTH108
        raise
    finally:
        os.close(descriptor)
    if not is_complete:
        os.unlink(path)  # noqa: PTH108
    return is_complete


def _hashed(data: bytes | memoryview, md5: bool) -> Written:
    return Written(len(data), _blake3()(data).hexdigest(), hashlib.md5(data).hexdigest() if md5 else None)


def _block() -> memoryview:
    """A buffer per thread, reused for all files, because the system would have to clear the pages of new buffers."""
    if not hasattr(_of_thread, "block"):
        _of_thread.block = memoryview(bytearray(BLOCK_BYTES))
    block: memoryview = _of_thread.block
    return block


_of_thread = threading.local()  # global, because a buffer belongs to a thread and not to a destination


@cache
def _blake3() -> Any:
    from blake3 import blake3  # called once per file, for which the time of an import is measurable

    return blake3


class NullSink(io.BytesIO):
    """Accepts bytes and keeps none."""

    def write(self, data: Any) -> int:
        return len(data)
