"""A part of a stream as a stream of its own, such as a member of an archive that is stored without compression."""

from __future__ import annotations

import io
from typing import IO, Any


class Window(io.RawIOBase):
    """Bytes `start` to `start + size` of a seekable stream as a separate stream.

    `place` is (file descriptor, offset of the first byte) if these bytes are part of a local file.
    """

    def __init__(
        self, stream: IO[bytes], start: int, size: int, lock: Any, place: tuple[int, int] | None = None
    ) -> None:
        self._stream, self._start, self._size, self._lock, self._position = stream, start, size, lock, 0
        self.place = place

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        base = {io.SEEK_SET: 0, io.SEEK_CUR: self._position, io.SEEK_END: self._size}[whence]
        self._position = max(0, base + offset)
        return self._position

    def tell(self) -> int:
        return self._position

    def readinto(self, buffer: Any) -> int:
        wanted = min(len(buffer), max(0, self._size - self._position))
        with self._lock:
            self._stream.seek(self._start + self._position)
            data = self._stream.read(wanted)
        buffer[: len(data)] = data
        self._position += len(data)
        return len(data)


def place_of(stream: Any) -> tuple[int, int] | None:
    """(file descriptor, offset) of a stream that is a local file or a window of one, else None."""
    raw = getattr(stream, "raw", None)
    if isinstance(raw, Window):
        return raw.place
    return (raw.fileno(), 0) if isinstance(raw, io.FileIO) else None
