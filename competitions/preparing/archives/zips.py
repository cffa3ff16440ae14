"""Zip archives, read in place from a file, from a stored member of another zip, or from memory.

A small member is read with one system call and decompressed with one call, so archives of a hundred thousand small
images are fast.
"""

from __future__ import annotations

import io
import os
import zipfile
import zlib
from collections.abc import Iterable, Iterator
from functools import cached_property
from typing import IO, Any

from isal import isal_zlib

from competitions.errors import DownloadError
from competitions.preparing.archives.reading import damaged
from competitions.preparing.archives.zipdirectory import Entry, ZipReader

Buffer = bytes | memoryview
_BLOCK = 1 << 20
_HEADER = 30  # bytes of a local file header before the name
_SLACK = 64  # room for the extra field that follows the name; a longer one costs a second read


class ZipContainer:
    """A zip archive over a seekable stream."""

    random_access = True

    def __init__(self, stream: IO[bytes], label: str) -> None:
        try:
            self.zip = ZipReader(stream)
        except (zipfile.BadZipFile, EOFError) as error:
            damaged(f"{label} is not a complete zip archive ({error}); download it again", error, stream)
        self.label = label
        self._place = _place(stream)

    @cached_property
    def sizes(self) -> dict[str, int]:
        return {name: entry.size for name, entry in self.zip.entries.items() if not name.endswith("/")}

    def open(self, name: str) -> IO[bytes]:
        file: Any = self.zip.open(name)
        if file._compress_type == zipfile.ZIP_DEFLATED:
            file._decompressor = isal_zlib.decompressobj(-zlib.MAX_WBITS)  # three times as fast on large tables
        stream: IO[bytes] = file
        return stream

    def stream(self, names: Iterable[str]) -> Iterator[tuple[str, IO[bytes]]]:
        for name in names:
            with self.open(name) as file:
                yield name, file

    def entry(self, name: str) -> Entry:
        """The entry in the directory: compression, CRC, sizes."""
        return self.zip.entries[name]

    def read(self, name: str) -> bytes:
        """All bytes of a small member, checked against its CRC. Raises `DownloadError` if they are damaged."""
        entry = self.zip.entries[name]
        if entry.method not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED) or entry.flags & 1:
            with self.zip.open(name) as file:
                return file.read()
        stored = self.read_compressed(name)
        try:
            if entry.method == zipfile.ZIP_DEFLATED:
                data = isal_zlib.decompress(stored, -zlib.MAX_WBITS, max(entry.size, 1))
            else:
                data = bytes(stored)
        except isal_zlib.error as error:  # type: ignore[misc]  # its stub calls it a function
            raise DownloadError(f"{self.label}: {name} is damaged ({error}); download it again") from error
        if len(data) != entry.size or isal_zlib.crc32(data) != entry.crc:
            raise DownloadError(f"{self.label}: {name} is damaged (its CRC differs); download it again")
        return data

    def read_compressed(self, name: str) -> memoryview:
        """All bytes of a small member as stored, still compressed."""
        entry = self.zip.entries[name]
        block = self._read_at(entry.offset, _HEADER + len(name) + _SLACK + entry.compressed)
        start = self._data_start(name, block)
        if start + entry.compressed > len(block):
            block, start = self._read_at(entry.offset + start, entry.compressed), 0
        if len(block) < start + entry.compressed:
            raise DownloadError(f"{self.label} ends within {name}; download it again")
        return memoryview(block)[start : start + entry.compressed]

    def checked(self, name: str) -> Iterator[Buffer]:
        """Yield the member's bytes as stored, in pieces, to be copied into another archive.

        They are also decompressed, because this is the only way to detect a flipped bit. Raises `DownloadError` after
        the last piece if size or CRC differ from the directory's.
        """
        entry = self.zip.entries[name]
        deflated = entry.method == zipfile.ZIP_DEFLATED
        inflater = isal_zlib.decompressobj(-zlib.MAX_WBITS) if deflated else None
        crc = size = 0
        try:
            for piece in [self.read_compressed(name)] if entry.compressed <= _BLOCK else _pieces(self.compressed(name)):
                for data in _inflated(inflater, piece) if inflater else (piece,):
                    crc, size = isal_zlib.crc32(data, crc), size + len(data)
                yield piece
        except isal_zlib.error as error:  # type: ignore[misc]  # its stub calls it a function
            raise DownloadError(f"{self.label}: {name} is damaged ({error}); download it again") from error
        if size != entry.size or crc != entry.crc:
            raise DownloadError(f"{self.label}: {name} is damaged (its CRC differs); download it again")

    def compressed(self, name: str) -> IO[bytes]:
        """The member's bytes as stored, as a stream."""
        entry = self.zip.entries[name]
        header = self._read_at(entry.offset, _HEADER + 4 * len(name))
        start = entry.offset + self._data_start(name, header)
        place = (self._place[0], self._place[1] + start) if self._place else None
        window = Window(self._stream(), start, entry.compressed, self._lock, place)
        stream: IO[bytes] = io.BufferedReader(window, _BLOCK)
        return stream

    def _data_start(self, name: str, header: bytes) -> int:
        """Offset of a member's data from its local header."""
        if header[:4] != b"PK\3\4":
            raise DownloadError(f"{self.label}: {name} is damaged (no header); download it again")
        length = int.from_bytes(header[26:28], "little")
        if name.isascii() and header[_HEADER : _HEADER + length] != name.encode():
            raise DownloadError(f"{self.label}: {name} has another name in its header; download it again")
        return _HEADER + length + int.from_bytes(header[28:30], "little")

    @property
    def _lock(self) -> Any:
        return self.zip._lock  # type: ignore[attr-defined]  # the lock that zipfile itself shares between members

    def _stream(self) -> IO[bytes]:
        if self.zip.fp is None:
            raise ValueError(f"{self.label} is closed")
        return self.zip.fp

    def _read_at(self, offset: int, size: int) -> bytes:
        if self._place:
            return os.pread(self._place[0], size, self._place[1] + offset)
        stream = self._stream()
        with self._lock:
            stream.seek(offset)
            return stream.read(size)


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


def _pieces(stream: IO[bytes]) -> Iterator[bytes]:
    with stream:
        while piece := stream.read(_BLOCK):
            yield piece


def _inflated(inflater: Any, piece: Buffer) -> Iterator[bytes]:
    """Yield the decompressed `piece` in blocks, because it can grow by a factor of a thousand."""
    while piece:
        yield inflater.decompress(piece, 16 * _BLOCK)
        piece = inflater.unconsumed_tail


def _place(stream: Any) -> tuple[int, int] | None:
    """(file descriptor, offset) of a stream that is a local file or a window of one, else None."""
    raw = getattr(stream, "raw", None)
    if isinstance(raw, Window):
        return raw.place
    return (raw.fileno(), 0) if isinstance(raw, io.FileIO) else None
