"""Digests of a prepared tree, in the form in which the packs record them."""

from __future__ import annotations

import hashlib
import io
import tarfile
import tempfile
import zipfile
from pathlib import Path
from typing import Any


def md5(data: bytes) -> str:
    return hashlib.md5(data).hexdigest()


def members(path: Path) -> dict[str, str] | None:
    """{member: md5} of an archive's files, None if `path` is no archive."""
    if path.name.endswith(".zip"):
        with zipfile.ZipFile(path) as archive:
            return {name: md5(archive.read(name)) for name in archive.namelist() if not name.endswith("/")}
    if path.name.endswith((".tar", ".tar.gz", ".tgz")):
        with tarfile.open(path, "r:*") as archive:
            return {m.name: md5(file.read()) for m in archive.getmembers() if (file := archive.extractfile(m))}
    if path.name.endswith(".7z"):
        import py7zr

        with tempfile.TemporaryDirectory() as folder:
            with py7zr.SevenZipFile(path) as archive:
                targets = [info.filename for info in archive.list() if not info.is_directory]
            if targets:
                with py7zr.SevenZipFile(path) as archive:
                    archive.extract(path=folder, targets=targets)
            return {
                p.relative_to(folder).as_posix(): md5(p.read_bytes()) for p in Path(folder).rglob("*") if p.is_file()
            }
    return None


def digest(path: Path, name: str, expected: dict[str, Any]) -> str | dict[str, str]:
    """What the pack records of a file: MD5 of bytes, of members, of pixels, or of a table's content."""
    inside = members(path)
    if inside is not None:
        return inside
    if name in expected["tables"]:
        import pandas as pd

        return "table:" + md5(pd.read_parquet(path).to_csv(index=False).encode())
    if path.suffix in expected["pixels"]:
        import numpy as np
        from PIL import Image

        array = np.asarray(Image.open(io.BytesIO(path.read_bytes())))
        return "pixels:" + md5(repr((array.shape, str(array.dtype))).encode() + array.tobytes())
    return md5(path.read_bytes())


def tree(root: Path, expected: dict[str, Any]) -> dict[str, Any]:
    """{path: digest} of every file below `root` but the description, which is ours."""
    paths = {p.relative_to(root).as_posix(): p for p in sorted(root.rglob("*")) if p.is_file()}
    return {name: digest(path, name, expected) for name, path in paths.items() if name != "description.md"}
