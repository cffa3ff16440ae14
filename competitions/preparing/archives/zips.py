"""Zip archives, read in place from a file, from a stored member of another zip, or from memory.

A small member is read with one system call and decompressed with one call, so archives of a hundred thousand small
images are fast.
"""

from __future__ import annotations

import io
import os
import struct
import zipfile
import zlib
from collections.abc import Iterable, Iterator
from functools import cached_property
from itertools import islice
from typing import IO, Any

from isal import isal_zlib

from competitions.errors import DownloadError
from competitions.preparing.archives.reading import damaged
from competitions.preparing.archives.window import Window, place_of
from competitions.preparing.archives.zipdirectory import Entry, UnsupportedZip, ZipReader

Buffer = bytes | memoryview
_BLOCK = 1 << 20
_READALL_BYTES = 16 << 20
_COMPRESSED_BYTES = 1 << 18
_SAFE_COMPRESSED_BYTES = 1 << 14  # as many bytes expand to at most 16 MiB, whatever the directory states
_LOCAL = struct.Struct("<4s22xHH")  # magic number, length of the name and of the extra field
_HEADER_BYTES = _LOCAL.size  # bytes of a local file header before the name
_METHODS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
_ENCRYPTED_FLAG = 1  # in the flags
_EXTRA_FIELD_BYTES = 64  # read for the extra field after the name; a longer field costs a second read


class NotAZip(DownloadError):
    """The bytes are not those of a whole zip archive."""


class ZipContainer:
    """A zip archive over a seekable stream."""

    random_access = True

    def __init__(self, stream: IO[bytes], label: str) -> None:
        try:
            self.zip = ZipReader(stream)
        except UnsupportedZip as error:
            raise DownloadError(f"{label} {error}") from error
        except (zipfile.BadZipFile, EOFError) as error:
            message = f"{label} is not a complete zip archive ({error}); download it again"
            damaged(message, error, stream, kind=NotAZip)
        self.label = label
        self._place = place_of(stream)

    @cached_property
    def sizes(self) -> dict[str, int]:
        return {name: entry.size for name, entry in self.zip.entries.items() if not name.endswith("/")}

    @property
    def begins(self) -> bool:
        """Whether the first file begins where the archive does, so that nothing precedes it."""
        return all(entry.offset == 0 for entry in islice(self.zip.entries.values(), 1))

    @property
    def on_disk(self) -> bool:
        """Whether the archive is a local file or a part of one, so that members can be read in any order at no cost."""
        return self._place is not None

    def open(self, name: str) -> IO[bytes]:
        entry = self.zip.entries[name]
        if entry.method not in _METHODS or entry.flags & _ENCRYPTED_FLAG:
            return self._open_otherwise(name, entry)
        stream: IO[bytes] = io.BufferedReader(_MemberStream(self, name, entry), min(_BLOCK, max(entry.size, 1 << 13)))
        return stream

    def stream(self, names: Iterable[str]) -> Iterator[tuple[str, IO[bytes]]]:
        for name in names:
            with self.open(name) as file:
                yield name, file

    def _open_otherwise(self, name: str, entry: Entry) -> IO[bytes]:
        """Open a member that is encrypted, or has a compression that `zipfile` may know."""
        if entry.flags & _ENCRYPTED_FLAG:
            raise DownloadError(f"{self.label}: {name} is encrypted; unpack it with its password, and pack it without")
        try:
            return self.zip.open(name)
        except NotImplementedError as error:
            raise DownloadError(
                f"{self.label}: {name} cannot be read ({error}); unpack it, and pack it with "
                "another program, such as 7-Zip or `zip`"
            ) from error

    def entry(self, name: str) -> Entry:
        """The entry in the directory: compression, CRC, sizes."""
        return self.zip.entries[name]

    def read(self, name: str) -> bytes:
        """All bytes of a small member, checked against its CRC. Raises `DownloadError` if they are damaged."""
        entry = self.zip.entries[name]
        if entry.method not in _METHODS or entry.flags & _ENCRYPTED_FLAG:
            with self._open_otherwise(name, entry) as file:
                return file.read()
        return bytes(self._content(name, entry, self._read_stored(name, entry)))

    def _content(self, name: str, entry: Entry, stored: Buffer) -> Buffer:
        """The content of a small member, checked."""
        data = stored
        try:
            if entry.method == zipfile.ZIP_DEFLATED:
                if len(stored) > _SAFE_COMPRESSED_BYTES:
                    data = isal_zlib.decompressobj(-zlib.MAX_WBITS).decompress(stored, entry.size + 1)
                else:
                    data = isal_zlib.decompress(stored, -zlib.MAX_WBITS, max(entry.size, 1))
        except isal_zlib.error as error:  # type: ignore[misc]  # its stub calls it a function
            raise DownloadError(f"{self.label}: {name} is damaged ({error}); download it again") from error
        if len(data) != entry.size or isal_zlib.crc32(data) != entry.crc:
            raise DownloadError(f"{self.label}: {name} is damaged (its CRC differs); download it again")
        return data

    def read_compressed(self, name: str) -> memoryview:
        """All bytes of a small member as stored, still compressed."""
        return self._read_stored(name, self.zip.entries[name])

    def _read_stored(self, name: str, entry: Entry) -> memoryview:
        offset, compressed = entry.offset, entry.compressed
        block = self.read_at(offset, _HEADER_BYTES + len(name) + _EXTRA_FIELD_BYTES + compressed)
        start = self._data_start(name, block)
        end = start + compressed
        if end > len(block):
            block, start, end = self.read_at(offset + start, compressed), 0, compressed
            if len(block) < end:
                raise DownloadError(f"{self.label} ends within {name}; download it again")
        return memoryview(block)[start:end]

    def checked(self, name: str) -> Iterator[Buffer]:
        """Yield the member's bytes as stored, in pieces, to be copied into another archive.

        They are also decompressed, because this is the only way to detect a flipped bit. Raises `DownloadError` after
        the last piece if size or CRC differ from the directory's.
        """
        entry = self.zip.entries[name]
        if entry.size <= _BLOCK and entry.compressed <= _BLOCK:
            stored = self._read_stored(name, entry)
            self._content(name, entry, stored)
            yield stored
            return
        deflated = entry.method == zipfile.ZIP_DEFLATED
        inflater = isal_zlib.decompressobj(-zlib.MAX_WBITS) if deflated else None
        crc = size = 0
        try:
            for piece in [self.read_compressed(name)] if entry.compressed <= _BLOCK else _pieces(self.compressed(name)):
                for data in _inflated(inflater, piece) if inflater else (piece,):
                    crc, size = isal_zlib.crc32(data, crc), size + len(data)
                    if size > entry.size:
                        raise DownloadError(f"{self.label}: {name} is larger than it says; download it again")
                yield piece
        except isal_zlib.error as error:  # type: ignore[misc]  # its stub calls it a function
            raise DownloadError(f"{self.label}: {name} is damaged ({error}); download it again") from error
        if size != entry.size or crc != entry.crc:
            raise DownloadError(f"{self.label}: {name} is damaged (its CRC differs); download it again")

    def compressed(self, name: str) -> IO[bytes]:
        """The member's bytes as stored, as a stream."""
        entry, start = self.zip.entries[name], self.start(name)
        place = (self._place[0], self._place[1] + start) if self._place else None
        window = Window(self._stream(), start, entry.compressed, self._lock, place)
        stream: IO[bytes] = io.BufferedReader(window, _BLOCK)
        return stream

    def start(self, name: str) -> int:
        """Offset of the member's data in the archive."""
        entry = self.zip.entries[name]
        return entry.offset + self._data_start(name, self.read_at(entry.offset, _HEADER_BYTES + 4 * len(name)))

    def _data_start(self, name: str, block: bytes) -> int:
        """Where a member's data are in a block that begins with its local header."""
        magic, length, extra = _LOCAL.unpack_from(block) if len(block) >= _HEADER_BYTES else (b"", 0, 0)
        if magic != b"PK\3\4":
            raise DownloadError(f"{self.label}: {name} is damaged (no header); download it again")
        name_end = _HEADER_BYTES + int(length)
        if name.isascii() and name.encode() not in (
            stored := block[_HEADER_BYTES:name_end],
            stored.replace(b"\\", b"/"),
        ):
            raise DownloadError(f"{self.label}: {name} has another name in its header; download it again")
        return name_end + int(extra)

    @property
    def _lock(self) -> Any:
        return self.zip._lock  # type: ignore[attr-defined]  # the lock that zipfile itself shares between members

    def _stream(self) -> IO[bytes]:
        if self.zip.fp is None:
            raise ValueError(f"{self.label} is closed")
        return self.zip.fp

    def read_at(self, offset: int, size: int) -> bytes:
        """Bytes of the archive, fewer at its end. Safe to call from several threads."""
        if self._place:
            return os.pread(self._place[0], size, self._place[1] + offset)
        stream = self._stream()
        with self._lock:
            stream.seek(offset)
            return stream.read(size)


class _MemberStream(io.RawIOBase):
    """The content of a member, inflated in large pieces: several times as fast as `zipfile`, mostly for lines.

    Raises the errors of `zipfile`: `BadZipFile` for damaged data, `EOFError` for data that end too early.
    """

    def __init__(self, container: ZipContainer, name: str, entry: Entry) -> None:
        self._container, self._name, self._entry = container, name, entry
        self._start = container.start(name)
        self._rewind()

    def _rewind(self) -> None:
        deflated = self._entry.method == zipfile.ZIP_DEFLATED
        self._inflater = isal_zlib.decompressobj(-zlib.MAX_WBITS) if deflated else None
        self._position = self._taken = self._crc = 0
        self._waiting: Buffer = b""  # compressed bytes that were read and not inflated

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._position

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        """Move by inflating the bytes in between. To move back, the member is inflated again from its start."""
        base = {io.SEEK_SET: 0, io.SEEK_CUR: self._position, io.SEEK_END: self._entry.size}[whence]
        target = min(max(0, base + offset), self._entry.size)
        if target < self._position:
            self._rewind()
        while self._position < target and self._next(min(_BLOCK, target - self._position)):
            pass
        return self._position

    def readinto(self, buffer: Any) -> int:
        data = self._next(len(buffer))
        buffer[: len(data)] = data
        return len(data)

    def readall(self) -> bytes:
        pieces = []
        while piece := self._next(_READALL_BYTES):
            pieces.append(piece)
        return pieces[0] if len(pieces) == 1 else b"".join(pieces)

    def _next(self, size: int) -> bytes:
        """At most `size` bytes; none at the end, after the CRC has been checked."""
        data = self._inflated(size) if self._inflater else self._stored(size)
        if data:
            self._position += len(data)
            self._crc = isal_zlib.crc32(data, self._crc)
            if self._position < self._entry.size:
                return data
        if self._position < self._entry.size:
            raise EOFError(f"{self._name} ends after {self._position:,} of {self._entry.size:,} bytes")
        if self._crc != self._entry.crc or self._position > self._entry.size:
            raise zipfile.BadZipFile(f"Bad CRC-32 for file {self._name!r}")
        return data

    def _stored(self, size: int) -> bytes:
        return self._read(min(size, self._entry.compressed - self._taken))

    def _inflated(self, size: int) -> bytes:
        inflater: Any = self._inflater
        while not inflater.eof:
            piece = self._waiting or self._read(min(_COMPRESSED_BYTES, self._entry.compressed - self._taken))
            try:
                data: bytes = inflater.decompress(piece, size)  # an empty piece gives the bytes that it buffers
            except isal_zlib.error as error:  # type: ignore[misc]  # its stub calls it a function
                raise zipfile.BadZipFile(f"{self._name} is damaged ({error})") from error
            self._waiting = inflater.unconsumed_tail
            if data or not piece:
                return data
        return b""

    def _read(self, size: int) -> bytes:
        if size <= 0:
            return b""
        data = self._container.read_at(self._start + self._taken, size)
        self._taken += len(data)
        return data


def _pieces(stream: IO[bytes]) -> Iterator[bytes]:
    with stream:
        while piece := stream.read(_BLOCK):
            yield piece


def _inflated(inflater: Any, piece: Buffer) -> Iterator[bytes]:
    """Yield the decompressed `piece` in blocks, because it can grow by a factor of a thousand."""
    while piece:
        yield inflater.decompress(piece, 16 * _BLOCK)
        piece = inflater.unconsumed_tail
