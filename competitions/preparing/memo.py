"""What one edition has read of a download, kept for the other one while both are declared.

Every reader gets an object of its own, made anew of what was written to a scratch file when it was read first: what one
edition changes never reaches the other. Little is in memory, whatever the size of the download. The scratch files are
in the system's temporary directory; what does not fit there is not kept and read again.
"""

from __future__ import annotations

import contextlib
import io
import marshal
import pickle
import shutil
import tempfile
import threading
from collections.abc import Callable, Hashable
from functools import partial
from typing import IO, Any, NamedTuple, TypeVar, cast

from competitions.preparing.archives.window import Window

T = TypeVar("T")
_BLOCK = 1 << 20
_SHARE = 4  # files of more than one part in this many of the free space are not kept


class Codec(NamedTuple):
    """How a value is written to a file, and read from it as an equal and independent value."""

    dump: Callable[[Any, IO[bytes]], object]
    load: Callable[[IO[bytes]], Any]


PICKLED = Codec(partial(pickle.dump, protocol=5), pickle.load)
"""For frames, Arrow arrays and bytes, which are written as they are."""
JSON = Codec(marshal.dump, lambda file: marshal.loads(file.read()))  # noqa: S302  # of this process
"""For values of JSON documents, which are written and read faster than their text."""


class Memo:
    """What was read, by key, until the last reader is done."""

    def __init__(self) -> None:
        self._scratch = tempfile.TemporaryFile(prefix="mlebench-memo-")  # noqa: SIM115  # lives as long as the memo
        self._lock = threading.Lock()
        self._values: dict[Hashable, tuple[int, int]] = {}
        self._files: dict[Hashable, _Copied] = {}
        self._shared: dict[Hashable, Any] = {}
        self._last = False
        self._within = 0

    def begin_last(self) -> None:
        """Note that the reader that follows is the last one: what it reads itself need not be kept."""
        self._last = True

    def value(self, key: Hashable, read: Callable[[], T], codec: Codec = PICKLED) -> T:
        """What `read` returns, or an equal value. Files that it opens are not kept besides."""
        if key in self._values:
            with self._stream(self._scratch, *self._values[key], self._lock) as file:
                return cast(T, codec.load(file))
        value = self._read(read)
        if not self._last:
            # No room on the disk, or a document that is nested too deeply: the next reader reads for itself.
            with contextlib.suppress(OSError, ValueError):
                start = self._scratch.seek(0, io.SEEK_END)
                codec.dump(value, self._scratch)
                self._scratch.flush()
                self._values[key] = start, self._scratch.tell() - start
        return value

    def shared(self, key: Hashable, read: Callable[[], T]) -> T:
        """What `read` returns, the same object for every reader: nobody may change it. The last one takes it away."""
        if key in self._shared:
            return cast(T, self._shared.pop(key) if self._last else self._shared[key])
        value = self._read(read)
        if not self._last:
            self._shared[key] = value
        return value

    def file(self, key: Hashable, size: int, open_file: Callable[[], IO[bytes]]) -> IO[bytes]:
        """A stream of a file of `size` bytes.

        The file that `open_file` opens is opened once for all readers, and read as far as one of them reads.
        """
        if self._within:
            return open_file()
        if size <= _BLOCK:
            return io.BytesIO(self.value(("bytes", key), lambda: _content(open_file)))
        copied = self._files.get(key)
        if copied is None:
            if self._last or size > shutil.disk_usage(tempfile.gettempdir()).free // _SHARE:
                return open_file()
            copied = self._files[key] = _Copied(open_file())
        return self._stream(copied, 0, size, copied.lock)

    def close(self) -> None:
        """Remove what is kept. Streams of files that are still open stay usable."""
        self._scratch.close()
        self._values, self._files, self._shared = {}, {}, {}

    @staticmethod
    def _stream(content: Any, start: int, size: int, lock: Any) -> IO[bytes]:
        stream: IO[bytes] = io.BufferedReader(_Reader(content, start, size, lock), _BLOCK)
        return stream

    def _read(self, read: Callable[[], T]) -> T:
        self._within += 1
        try:
            return read()
        finally:
            self._within -= 1


class _Reader(Window):
    def readall(self) -> bytes:
        """The rest at once."""
        rest = bytearray(self._size - self._position)
        return bytes(memoryview(rest)[: self.readinto(rest)])


class _Copied:
    """A file that can be read again and again: what was read of it is in a scratch file."""

    def __init__(self, source: IO[bytes]) -> None:
        self.lock = threading.Lock()
        self._source = source
        self._scratch = tempfile.TemporaryFile(prefix="mlebench-memo-")  # noqa: SIM115  # lives as long as this
        self._copied = self._position = 0

    def seek(self, offset: int) -> None:
        """Move to an offset from the start."""
        self._position = offset

    def read(self, size: int) -> bytes:
        """The next `size` bytes; fewer at the end."""
        while (missing := self._position + size - self._copied) > 0:
            piece = self._source.read(max(missing, _BLOCK))
            if not piece:
                break
            self._scratch.seek(self._copied)
            self._scratch.write(piece)
            self._copied += len(piece)
        self._scratch.seek(self._position)
        data = self._scratch.read(size)
        self._position += len(data)
        return data

    def __del__(self) -> None:
        self._source.close()


def _content(open_file: Callable[[], IO[bytes]]) -> bytes:
    with open_file() as file:
        return file.read()
