"""Create downloads from data that ships with an installed library, for competitions whose source is `bundled`."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Mapping


def zip_bytes(files: Mapping[str, bytes]) -> bytes:
    """A zip archive of `files` (name -> content). Its timestamps are fixed, so equal content gives equal bytes."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in files.items():
            archive.writestr(zipfile.ZipInfo(name, (1980, 1, 1, 0, 0, 0)), content, zipfile.ZIP_DEFLATED)
    return buffer.getvalue()
