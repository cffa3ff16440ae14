"""Write zip archives sequentially.

One worker writes an archive; several archives are written in parallel. Writing one archive in parallel segments would
gain little, because copying a compressed member (a read, a CRC check and a write) is limited by the disk.
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
    """A zip archive with fixed times that is written sequentially. Compressed members can be copied unchanged."""

    def __init__(self, sink: HashingWriter) -> None:
        # Combines small members into large writes.
        self._buffer = io.BufferedWriter(sink, BLOCK)
        self._zip = zipfile.ZipFile(self._buffer, "w", allowZip64=True)

    def _info(self, name: str, method: int) -> zipfile.ZipInfo:
        info = zipfile.ZipInfo(name, _TIME)
        info.compress_type, info.external_attr, info.create_system = method, _MODE, 3
        return info

    def add(self, name: str, pieces: Iterable[Buffer], stored: bool) -> None:
        """Add a member, compressed unless `stored`."""
        method = zipfile.ZIP_STORED if stored else zipfile.ZIP_DEFLATED
        with self._zip.open(self._info(name, method), "w", force_zip64=True) as member:
            for piece in pieces:
                member.write(piece)

    def add_folder(self, name: str) -> None:
        """Add an entry for an empty folder."""
        info = zipfile.ZipInfo(name.rstrip("/") + "/", _TIME)
        info.external_attr = (0o40755 << 16) | 0x10
        self._zip.writestr(info, b"")

    def copy_compressed(self, name: str, source: Entry, compressed: Iterable[Buffer]) -> None:
        """Copy a member of another archive without decompressing it."""
        info = self._info(name, source.method)
        info.CRC, info.file_size, info.compress_size = source.crc, source.size, source.compressed
        archive: Any = self._zip  # zipfile has no public way to add compressed bytes
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
        """Stop writing. The incomplete file must be discarded."""
        archive: Any = self._zip
        archive._didModify, archive.fp = False, None

    def close(self) -> None:
        """Write the central directory."""
        self._zip.close()
        self._buffer.flush()
        self._buffer.detach()
