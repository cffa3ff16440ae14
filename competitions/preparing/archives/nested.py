"""Open archives that are in other archives, without unpacking them.

The exception is an archive that is compressed inside another one: it is decompressed once, to memory or to a scratch
file, because a compressed stream cannot be read at an offset.
"""

from __future__ import annotations

import contextlib
import io
import os
import sys
import tempfile
import zipfile
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import IO

from competitions.preparing.archives.containers import (
    IN_MEMORY,
    Container,
    DirectoryContainer,
    RemoteDirectory,
    open_archive,
)
from competitions.preparing.archives.formats import HEAD_BYTES, recognised
from competitions.preparing.archives.zips import ZipContainer

_BLOCK = 1 << 20
_MIN_FILE_BYTES = 1 << 20  # smaller archives are kept in memory without a file descriptor


def open_nested(parent: Container, name: str, label: str) -> Container:
    """Open the archive `name` in `parent` without unpacking it."""
    label = str(parent.root / name) if isinstance(parent, DirectoryContainer) else label
    if isinstance(parent, ZipContainer) and label.endswith((".tar.gz", ".tgz")):
        # It is only read from front to back, so decompressing it on the fly avoids a scratch copy of up to 75 GB.
        return open_archive(label, lambda: parent.open(name))
    suffix = ""
    if label.endswith((".tar.gz", ".tgz")):  # those that `Tree.archive` declares are not compressed
        with parent.open(name) as file:
            suffix = recognised(file.read(HEAD_BYTES), label)
    return open_archive(label, seekable(parent, name), suffix)


def seekable(parent: Container, name: str) -> Callable[[], IO[bytes]]:
    """A function that opens the file `name` as a stream that can seek to any offset at no extra cost.

    A file that is compressed in `parent` is decompressed once, to memory if it is small and to a scratch file
    otherwise, which exists as long as the function. Except on Linux, its streams must be used one after the other.
    """
    if isinstance(parent, DirectoryContainer | RemoteDirectory):
        return lambda: parent.open(name)
    if isinstance(parent, ZipContainer) and parent.entry(name).method == zipfile.ZIP_STORED:
        return lambda: parent.compressed(name)
    size = parent.sizes[name]
    scratch = _memory_file() if _MIN_FILE_BYTES < size <= IN_MEMORY else None
    if scratch is None and size <= IN_MEMORY:
        with parent.open(name) as file:
            content = file.read()
        return lambda: io.BytesIO(content)
    if scratch is None:
        scratch = tempfile.TemporaryFile(prefix="mlebench-nested-")  # noqa: SIM115  # lives as long as the opener
    with parent.open(name) as file:
        _copy_ahead(file, scratch)
    return lambda: _again(scratch)


def _memory_file() -> IO[bytes] | None:
    """A scratch file in memory; None if the system has no such files."""
    if sys.platform == "linux":
        with contextlib.suppress(OSError):
            return os.fdopen(os.memfd_create("mlebench-nested"), "w+b")
    return None


def _copy_ahead(file: IO[bytes], sink: IO[bytes]) -> None:
    """Copy a stream. While a thread writes a block, the next one is decompressed."""
    written: Future[int] | None = None
    with ThreadPoolExecutor(1, "scratch") as writer:
        while block := file.read(_BLOCK):
            if written:
                written.result()
            written = writer.submit(sink.write, block)
        if written:
            written.result()
    sink.flush()  # streams of the scratch file have other buffers


def _again(file: IO[bytes]) -> IO[bytes]:
    """Another stream of a scratch file. Closing it does not close the file."""
    with contextlib.suppress(OSError):
        return open(f"/proc/self/fd/{file.fileno()}", "rb")  # noqa: PTH123  # with a position of its own
    duplicate = os.fdopen(os.dup(file.fileno()), "rb")
    duplicate.seek(0)
    return duplicate
