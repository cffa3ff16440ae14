"""Stream the members of a 7z archive one after the other, without writing them to a disk or holding them in memory.

py7zr decompresses an archive in one call and passes the bytes to writers. The call runs in a thread, which waits while
the reader has a few blocks that it has not read yet.

py7zr decompresses up to 128 MB at a time; with Deflate it decompresses one MiB at a time, to at most a GiB. The header
of an archive, with a record for each member, is in memory.
"""

from __future__ import annotations

import io
import lzma
import queue
import struct
import threading
from collections.abc import Callable, Iterator, Sequence
from pathlib import PurePosixPath
from typing import IO, Any

import py7zr
from py7zr import compressor
from py7zr.io import Py7zIO, WriterFactory

from competitions.preparing.archives.reading import damaged

ERRORS = (py7zr.exceptions.ArchiveError, EOFError, OSError, lzma.LZMAError, struct.error, ValueError)
"""What py7zr raises for a damaged archive: some damage of the header is not noticed before a seek or a conversion."""
_BLOCK = 1 << 20
_MAX_WAITING_BLOCKS = 8  # between the two threads
_POLL_SECONDS = 0.2  # after which the thread checks whether the reader has stopped


class _ZstdDecompressor(compressor.ZstdDecompressor):
    """The decompressor of py7zr ignores `max_length`: a MiB can expand to more than the memory of a machine."""

    def decompress(self, data: bytes | bytearray | memoryview, max_length: int = -1) -> bytes:
        if self.decompressor.eof:
            return b""
        content: bytes = self.decompressor.decompress(data, max_length)
        return content


compressor.algorithm_class_map[py7zr.FILTER_ZSTD] = (compressor.ZstdCompressor, _ZstdDecompressor)


class _Stopped(Exception):
    """The reader has stopped before the end of the archive."""


class _Event:
    """An event of the thread: begin of a member, block, end of the member, or finished, with an error or None."""

    def __init__(self, kind: str, value: Any = None) -> None:
        self.kind, self.value = kind, value


class _Pipe:
    """A bounded queue of events that both sides can leave."""

    def __init__(self) -> None:
        self._events: queue.Queue[_Event] = queue.Queue(_MAX_WAITING_BLOCKS)
        self.stopped = threading.Event()

    def put(self, event: _Event) -> None:
        """Add an event. Raises `_Stopped` once the reader has stopped."""
        while not self.stopped.is_set():
            try:
                self._events.put(event, timeout=_POLL_SECONDS)
            except queue.Full:
                continue
            return
        raise _Stopped

    def get(self) -> _Event:
        return self._events.get()


class _Writer(Py7zIO):
    """Receives the bytes of one member in the thread."""

    def __init__(self, pipe: _Pipe) -> None:
        self._pipe, self._count = pipe, 0

    def write(self, s: bytes | bytearray) -> int:
        view = memoryview(s)
        for start in range(0, len(s), _BLOCK):
            self._pipe.put(_Event("block", view[start : start + _BLOCK]))
        self._count += len(s)
        return len(s)

    def read(self, size: int | None = None) -> bytes:
        return b""

    def seek(self, offset: int, whence: int = 0) -> int:
        return offset

    def seekable(self) -> bool:
        return False

    def flush(self) -> None:
        pass

    def size(self) -> int:
        return self._count

    def close(self) -> None:
        self._pipe.put(_Event("end"))


class _Factory(WriterFactory):
    def __init__(self, pipe: _Pipe) -> None:
        self._pipe = pipe

    def create(self, filename: str) -> Py7zIO:
        self._pipe.put(_Event("begin", filename))
        return _Writer(self._pipe)


class _Member(io.RawIOBase):
    """A member as a stream, valid until the next one is requested."""

    def __init__(self, pipe: _Pipe) -> None:
        self._pipe, self._block, self._ended = pipe, memoryview(b""), False

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        while not self._block and not self._ended:
            event = self._pipe.get()
            if event.kind == "finished":
                raise event.value or EOFError("the archive ends within a member")
            self._ended = event.kind == "end"
            self._block = memoryview(b"") if self._ended else event.value
        count = min(len(buffer), len(self._block))
        buffer[:count] = self._block[:count]
        self._block = self._block[count:]
        return count


def stream(opener: Callable[[], IO[bytes]], label: str, names: Sequence[str]) -> Iterator[tuple[str, IO[bytes]]]:
    """Yield the named members of the archive in storage order; empty files may come first.

    Raises `DownloadError` for a damaged archive, at the latest when the damaged member has been read, and errors of
    reading the archive as they are. `label` is its name in messages.
    """
    pipe = _Pipe()
    of_path = {PurePosixPath(name).as_posix(): name for name in names}  # py7zr passes normalised paths
    thread = threading.Thread(target=_extract, args=(opener, label, names, pipe), name="7z", daemon=True)
    thread.start()
    try:
        while (event := pipe.get()).kind == "begin":
            file = io.BufferedReader(_Member(pipe), _BLOCK)
            if event.value in of_path:  # py7zr renames the second one of a name
                yield of_path[event.value], file
            while file.read(_BLOCK):  # what the caller did not read
                pass
        if event.value is not None:
            raise event.value
    finally:
        pipe.stopped.set()
        thread.join()


def _extract(opener: Callable[[], IO[bytes]], label: str, names: Sequence[str], pipe: _Pipe) -> None:
    error: BaseException | None = None
    try:
        with opener() as file:
            try:
                with py7zr.SevenZipFile(file) as archive:
                    archive.extract(targets=names, factory=_Factory(pipe))
            except ERRORS as failure:
                damaged(f"{label} is not a complete 7z archive ({failure}); download it again", failure, file)
    except _Stopped:
        return
    except BaseException as caught:
        error = caught
    try:
        pipe.put(_Event("finished", error))
    except _Stopped:
        return
