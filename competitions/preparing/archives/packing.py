"""Pack a folder as a zip archive, without compression: the same files make the same bytes."""

from __future__ import annotations

import io
import shutil
import zipfile

from competitions.preparing.archives.containers import Container
from competitions.preparing.archives.names import is_leftover

_BLOCK = 1 << 20


def pack(container: Container, sink: io.RawIOBase) -> None:
    """Write a zip archive of the files of a container, but for those that macOS and Windows add, to a stream."""
    buffer = io.BufferedWriter(sink, _BLOCK)
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_STORED) as archive:
        for name, size in container.sizes.items():
            if not is_leftover(name):
                info = zipfile.ZipInfo(name)  # with the time 1980-01-01
                info.file_size = size
                with container.open(name) as file, archive.open(info, "w", force_zip64=True) as member:
                    shutil.copyfileobj(file, member, _BLOCK)
    buffer.flush()
    buffer.detach()
