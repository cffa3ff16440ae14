"""Write zip archives sequentially.

One worker writes an archive; several archives are written in parallel. Members are copied one after the other, because
that (a read, a CRC check and a write) is limited by the disk. A new member is compressed on all cores.
"""

from __future__ import annotations

import io
import os
import struct
import zipfile
import zlib
from collections import deque
from collections.abc import Iterable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

from isal import isal_zlib

from competitions.preparing.archives.zipdirectory import Entry
from competitions.preparing.archives.zips import Buffer
from storage.writers import BLOCK, HashingWriter

_MODE = 0o644 << 16
_TIME = (1980, 1, 1, 0, 0, 0)
_DATE = 1 << 5 | 1  # the same day, as zip stores it
_VERSION, _UNIX, _UTF8 = 20, 3, 0x800
_LIMIT = (1 << 31) - 1  # bytes beyond which `zipfile` writes zip64 fields
_MOST = (1 << 16) - 1  # members without them
_LOCAL = struct.pack("<4s2B", b"PK\3\4", _VERSION, 0)  # how the header before a member begins
_CENTRAL = struct.pack("<4s4B", b"PK\1\2", _VERSION, _UNIX, _VERSION, 0)  # and its record at the end
_BOTH = struct.Struct("<4H3L2H")  # flags, method, time, date, CRC, sizes, length of the name and of the extra field
_ATTRIBUTES = struct.Struct("<3H2L")  # length of the comment, disk, internal and external attributes, offset
_END = struct.Struct("<4s4H2LH")
_LEVEL = isal_zlib.Z_BEST_COMPRESSION  # nearly as small as by zlib's default, in a fraction of the time
_DEFLATED = 1 << 20  # bytes that a thread compresses at a time
_WINDOW = 1 << 15  # bytes that deflate refers back to
_WORKERS = min(os.cpu_count() or 1, 8)


class ZipWriter:
    """A zip archive with fixed times that is written sequentially. Compressed members can be copied unchanged.

    While members are only copied, and need no zip64 fields, their headers are packed here, with the bytes that
    `zipfile` writes: it takes several times as long as copying a small picture. `zipfile` does everything else.
    """

    def __init__(self, sink: HashingWriter) -> None:
        # Combines small members into large writes.
        self._buffer = io.BufferedWriter(sink, BLOCK)
        self._zip: Any = zipfile.ZipFile(self._buffer, "w", allowZip64=True)
        self._copied: list[tuple[str, Entry, int]] | None = []
        """Name, source and offset of the members so far; None once `zipfile` writes."""
        self._directory: list[bytes] = []  # their records at the end, packed with the headers: most fields are the same
        self._end = 0

    def _info(self, name: str, method: int) -> zipfile.ZipInfo:
        info = zipfile.ZipInfo(name, _TIME)
        info.compress_type, info.external_attr, info.create_system = method, _MODE, 3
        return info

    def _info_of(self, name: str, source: Entry, offset: int) -> zipfile.ZipInfo:
        info = self._info(name, source.method)
        info.CRC, info.file_size, info.compress_size = source.crc, source.size, source.compressed
        info.header_offset = offset
        return info

    def _hand_over(self) -> None:
        """Let `zipfile` go on with what was copied so far."""
        if self._copied is None:
            return
        for copied in self._copied:
            self._note(self._info_of(*copied))
        if self._copied:
            self._zip.fp.offset = self._zip.start_dir = self._end
        self._copied, self._directory = None, []

    def _note(self, info: zipfile.ZipInfo) -> None:
        self._zip.filelist.append(info)
        self._zip.NameToInfo[info.filename] = info
        self._zip._didModify = True

    def add(self, name: str, pieces: Iterable[Buffer], stored: bool) -> None:
        """Add a member, compressed unless `stored`."""
        self._hand_over()
        method = zipfile.ZIP_STORED if stored else zipfile.ZIP_DEFLATED
        with self._zip.open(self._info(name, method), "w", force_zip64=True) as member:
            if not stored:
                member._compressor = _Deflater()  # in place of zlib's own
            for piece in pieces:
                member.write(piece)

    def add_folder(self, name: str) -> None:
        """Add an entry for an empty folder."""
        self._hand_over()
        info = zipfile.ZipInfo(name.rstrip("/") + "/", _TIME)
        info.external_attr = (0o40755 << 16) | 0x10
        self._zip.writestr(info, b"")

    def copy_compressed(self, name: str, source: Entry, compressed: Iterable[Buffer]) -> None:
        """Copy a member of another archive without decompressing it."""
        if max(source.size, source.compressed, self._end) > _LIMIT:
            self._hand_over()
        if self._copied is not None:
            self._buffer.write(self._header(name, source))
            for piece in compressed:
                self._buffer.write(piece)
            self._end += source.compressed
            return
        archive = self._zip  # zipfile has no public way to add compressed bytes
        info = self._info_of(name, source, archive.fp.tell())
        archive._writecheck(info)
        archive.fp.write(info.FileHeader())
        for piece in compressed:
            archive.fp.write(piece)
        self._note(info)
        archive.start_dir = archive.fp.tell()

    def copy_small(self, members: Iterable[tuple[str, tuple[Entry, Buffer]]]) -> None:
        """Copy small members of another archive, given as name, entry and compressed bytes, like `copy_compressed`."""
        for name, (source, stored) in members:
            if self._copied is None or self._end > _LIMIT:
                self.copy_compressed(name, source, [stored])
            else:
                self._buffer.write(self._header(name, source))
                self._buffer.write(stored)
                self._end += len(stored)

    def _header(self, name: str, source: Entry) -> bytes:
        """The header of a member that is copied next, which is noted."""
        assert self._copied is not None
        text = name.encode()
        flags = 0 if name.isascii() else _UTF8
        both = _BOTH.pack(flags, source.method, 0, _DATE, source.crc, source.compressed, source.size, len(text), 0)
        self._copied.append((name, source, self._end))
        self._directory.append(_CENTRAL + both + _ATTRIBUTES.pack(0, 0, 0, _MODE, self._end) + text)
        header = _LOCAL + both + text
        self._end += len(header)
        return header

    def abandon(self) -> None:
        """Stop writing. The incomplete file must be discarded."""
        self._zip._didModify, self._zip.fp = False, None

    def close(self) -> None:
        """Write the central directory."""
        if self._copied and len(self._copied) <= _MOST and self._end <= _LIMIT:
            directory = b"".join(self._directory)
            count = len(self._copied)
            self._buffer.write(directory)
            self._buffer.write(_END.pack(b"PK\5\6", 0, 0, count, count, len(directory), self._end, 0))
            self.abandon()
        else:
            self._hand_over()
            self._zip.close()
        self._buffer.flush()
        self._buffer.detach()


class _Deflater:
    """Compresses a stream in blocks on several threads, with a result that does not depend on their number.

    Each block may refer to the end of the one before, and ends at a byte (`Z_SYNC_FLUSH`), so that they can follow one
    another.
    """

    def __init__(self) -> None:
        self._pool: ThreadPoolExecutor | None = None  # most members are a single block, which needs no thread
        self._block, self._before = bytearray(), b""
        self._waiting: deque[Future[bytes]] = deque()

    def compress(self, piece: Buffer) -> bytes:
        """Take a piece of the stream; returns compressed bytes that are ready."""
        self._block += piece
        ready = []
        while len(self._block) > _DEFLATED:
            self._submit(bytes(memoryview(self._block)[:_DEFLATED]), zlib.Z_SYNC_FLUSH)
            del self._block[:_DEFLATED]
            while len(self._waiting) > _WORKERS:
                ready.append(self._waiting.popleft().result())
        return b"".join(ready)

    def flush(self) -> bytes:
        """The rest of the compressed stream."""
        if self._pool is None:
            return _deflated(bytes(self._block), b"", zlib.Z_FINISH)
        self._submit(bytes(self._block), zlib.Z_FINISH)
        with self._pool:
            return b"".join(future.result() for future in self._waiting)

    def _submit(self, block: bytes, mode: int) -> None:
        if self._pool is None:
            self._pool = ThreadPoolExecutor(_WORKERS, "deflate")
        self._waiting.append(self._pool.submit(_deflated, block, self._before, mode))
        self._before = block[-_WINDOW:]


def _deflated(block: bytes, before: bytes, mode: int) -> bytes:
    options = (_LEVEL, zlib.DEFLATED, -zlib.MAX_WBITS, zlib.DEF_MEM_LEVEL, zlib.Z_DEFAULT_STRATEGY)
    deflater = isal_zlib.compressobj(*options, before) if before else isal_zlib.compressobj(*options)
    return deflater.compress(block) + deflater.flush(mode)
