"""Writing zip archives front to back.

An archive is written by one worker, several of them side by side. Cutting one into segments would gain little: members
that are taken over as they are cost a read, a check and a write, which is what the disk is bound by.
"""

from __future__ import annotations

import io
import zipfile
from collections.abc import Iterable
from typing import Any

from competitions.preparing.archives.zipdirectory import Entry
from competitions.preparing.archives.zips import Buffer
from storage.writers import BLOCK, HashingWriter

_MODE = 0o644 << 16
_TIME = (1980, 1, 1, 0, 0, 0)


class ZipWriter:
    """A zip archive written front to back, with fixed times, that takes over compressed members as they are."""

    def __init__(self, sink: HashingWriter) -> None:
        # Tens of thousands of small members become few large writes.
        self._buffer = io.BufferedWriter(sink, BLOCK)
        self._zip = zipfile.ZipFile(self._buffer, "w", allowZip64=True)

    def _info(self, name: str, method: int) -> zipfile.ZipInfo:
        info = zipfile.ZipInfo(name, _TIME)
        info.compress_type, info.external_attr, info.create_system = method, _MODE, 3
        return info

    def add(self, name: str, pieces: Iterable[Buffer], stored: bool) -> None:
        """Compress a new member."""
        method = zipfile.ZIP_STORED if stored else zipfile.ZIP_DEFLATED
        with self._zip.open(self._info(name, method), "w", force_zip64=True) as member:
            for piece in pieces:
                member.write(piece)

    def add_folder(self, name: str) -> None:
        """An entry for an empty folder."""
        info = zipfile.ZipInfo(name.rstrip("/") + "/", _TIME)
        info.external_attr = (0o40755 << 16) | 0x10
        self._zip.writestr(info, b"")

    def take_over(self, name: str, source: Entry, compressed: Iterable[Buffer]) -> None:
        """A member of another archive without inflating and deflating it: header, then its bytes as stored."""
        info = self._info(name, source.method)
        info.CRC, info.file_size, info.compress_size = source.crc, source.size, source.compressed
        archive: Any = self._zip  # zipfile has no public way to add bytes that are compressed already
        info.header_offset = archive.fp.tell()
        archive._writecheck(info)
        archive.fp.write(info.FileHeader())
        for piece in compressed:
            archive.fp.write(piece)
        archive.filelist.append(info)
        archive.NameToInfo[info.filename] = info
        archive.start_dir = archive.fp.tell()
        archive._didModify = True

    def abandon(self) -> None:
        """Write no more: what is half written will be discarded."""
        archive: Any = self._zip
        archive._didModify, archive.fp = False, None

    def close(self) -> None:
        """Write the directory."""
        self._zip.close()
        self._buffer.flush()
        self._buffer.detach()
