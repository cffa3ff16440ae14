"""Tell wrong bytes from failed reading: only the first is a damaged download.

Libraries for archives take an error of reading for the end of the archive, or hide it behind an error of the format.
`reader` keeps the errors of a remote stream, and makes an error of an answer that is shorter than what was asked for;
`damaged` finds them behind an error of the format, and raises them as they are.
"""

from __future__ import annotations

import errno
import gzip
import io
from typing import IO, Any, NoReturn

from competitions.errors import DownloadError


class ShortAnswer(OSError):
    """A server sent fewer bytes than the file has at that place. Reading it again may succeed."""


class _Reader(io.RawIOBase):
    """A seekable stream of known size whose errors are kept in `failure`."""

    def __init__(self, stream: IO[bytes], label: str) -> None:
        self._stream, self._label = stream, label
        self.failure: Exception | None = None
        self._size = stream.seek(0, io.SEEK_END)
        stream.seek(0)

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        base = {io.SEEK_SET: 0, io.SEEK_CUR: self._stream.tell(), io.SEEK_END: self._size}[whence]
        if base + offset < 0:  # as a local file says it
            raise OSError(errno.EINVAL, "Invalid argument")
        return self._stream.seek(base + offset)

    def tell(self) -> int:
        return self._stream.tell()

    def read(self, size: int | None = -1) -> bytes:
        begin = self._stream.tell()
        rest = max(0, self._size - begin)
        wanted = rest if size is None or size < 0 else min(size, rest)
        try:
            data = self._stream.read(wanted)
            if len(data) < wanted:
                raise ShortAnswer(f"{self._label}: {len(data)} of {wanted} bytes arrived from offset {begin}")
        except Exception as error:  # every file system has its own errors
            self.failure = error
            raise
        return data

    def readinto(self, buffer: Any) -> int:
        data = self.read(len(buffer))
        buffer[: len(data)] = data
        return len(data)

    def close(self) -> None:
        if not self.closed:
            self._stream.close()
        super().close()


def reader(stream: IO[bytes], label: str) -> IO[bytes]:
    """A stream of a remote file whose errors, and answers cut short, are never taken for its content."""
    found: Any = _Reader(stream, label)
    return found


def damaged(message: str, error: BaseException, stream: Any = None) -> NoReturn:
    """Raise `DownloadError` for an error of an archive's format, or the error of reading that is behind it."""
    failure = getattr(stream, "failure", None)
    behind: BaseException | None = error
    while failure is None and behind is not None:
        if isinstance(behind, OSError) and not isinstance(behind, gzip.BadGzipFile):
            failure = None if behind.errno == errno.EINVAL else behind  # EINVAL: to an offset that cannot be
        behind = behind.__cause__ or behind.__context__
    if failure is not None:
        raise failure
    raise DownloadError(message) from error
