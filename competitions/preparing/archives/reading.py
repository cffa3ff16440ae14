"""Distinguish wrong bytes from failed reading: only wrong bytes mean a damaged download.

Libraries for archives take an error of reading for the end of the archive, or raise an error of the format instead.
`reader` records the errors of a remote stream, and treats an answer that is shorter than requested as an error.
`damaged` finds the cause of an error of the format, and raises errors of reading unchanged.
"""

from __future__ import annotations

import errno
import gzip
import io
from typing import IO, Any, NoReturn

from competitions.errors import DownloadError


class ShortAnswer(OSError):
    """A server sent fewer bytes than the file has at that offset. Reading again may succeed."""


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
        if base + offset < 0:  # the error of a local file
            raise OSError(errno.EINVAL, "Invalid argument")
        return self._stream.seek(base + offset)

    def tell(self) -> int:
        return self._stream.tell()

    def read(self, size: int | None = -1) -> bytes:
        begin = self._stream.tell()
        remaining = max(0, self._size - begin)
        wanted = remaining if size is None or size < 0 else min(size, remaining)
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
    """A stream of a remote file that records errors and refuses answers that are too short."""
    remote_reader: Any = _Reader(stream, label)
    return remote_reader


def damaged(
    message: str, error: BaseException, stream: Any = None, *, kind: type[DownloadError] = DownloadError
) -> NoReturn:
    """Raise an error of this `kind` for an error of an archive's format, or the error of reading that caused it."""
    failure = getattr(stream, "failure", None)
    cause: BaseException | None = error
    while failure is None and cause is not None:
        if isinstance(cause, OSError) and not isinstance(cause, gzip.BadGzipFile):
            failure = None if cause.errno == errno.EINVAL else cause  # EINVAL: a seek to an invalid offset
        cause = cause.__cause__ or cause.__context__
    if failure is not None:
        raise failure
    raise kind(message) from error
