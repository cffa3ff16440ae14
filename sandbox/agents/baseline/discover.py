"""Find and read tables and images below a folder, including those in archives."""

from __future__ import annotations

import io
import os
import tempfile
import time
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from PIL import Image

TABLES = (".csv", ".tsv", ".json", ".parquet")
PACKED = (".zip", ".7z")
PICTURES = (".png", ".jpg", ".jpeg", ".tif", ".tiff", ".bmp", ".gif")

Where = tuple[Path, str | None]
"""A file, or an archive and the name of its member."""


def sample_submission(data: Path) -> Path:
    """The sample submission: the path in SAMPLE_SUBMISSION, else the shortest path that looks like one."""
    if told := os.environ.get("SAMPLE_SUBMISSION"):
        return Path(told)
    found = [path for path in data.rglob("*") if "sample" in path.name.lower() and "submission" in path.name.lower()]
    found = [path for path in found if path.suffix in (".csv", ".gz", *PACKED)]
    if not found:
        raise SystemExit("there is no sample submission: the agent cannot infer the task")
    return min(found, key=lambda path: (len(path.parts), len(path.name)))


def read_table(path: Path, **options: Any) -> pd.DataFrame:
    """Read a table in any of the formats; from an archive, read the first table."""
    if path.suffix == ".7z":
        import py7zr

        with tempfile.TemporaryDirectory() as folder:
            py7zr.SevenZipFile(path).extractall(folder)
            return read_table(next(tables(Path(folder))), **options)
    if path.suffix == ".zip":
        with zipfile.ZipFile(path) as archive, archive.open(_members(archive, TABLES)[0]) as member:
            return _read(io.BytesIO(member.read()), member.name, options)
    return _read(path, path.name, options)


def _read(source: Any, name: str, options: dict[str, Any]) -> pd.DataFrame:
    if ".parquet" in name:
        return pd.read_parquet(source)
    if ".json" in name:
        try:
            return pd.read_json(source)
        except ValueError:
            return pd.read_json(source, lines=True)
    return pd.read_csv(source, sep="\t" if ".tsv" in name else ",", low_memory=False, **options)


def _members(archive: zipfile.ZipFile, suffixes: tuple[str, ...]) -> list[str]:
    return [name for name in archive.namelist() if name.lower().endswith(suffixes) and not name.startswith("__MACOSX")]


def tables(data: Path) -> Iterator[Path]:
    """Files below ``data`` that are tables, or archives with exactly one table; the least nested first."""
    for path in sorted(data.rglob("*"), key=lambda path: (len(path.parts), path.name)):
        if path.name.endswith((*TABLES, ".csv.gz", *(kind + ".7z" for kind in TABLES))):
            yield path
        elif path.suffix == ".zip":
            with zipfile.ZipFile(path) as archive:
                if len(_members(archive, TABLES)) == 1:
                    yield path


def _pictures(data: Path) -> Iterator[tuple[str, Where]]:
    """Path below ``data`` (archives count as folders) and location of every image."""
    for folder, _, names in os.walk(data):
        for path in (Path(folder, name) for name in names):
            inside = path.relative_to(data).as_posix()
            if path.name.lower().endswith(PICTURES):
                yield inside, (path, None)
            elif path.suffix == ".zip":
                with zipfile.ZipFile(path) as archive:
                    for member in _members(archive, PICTURES):
                        yield f"{inside}/{member}", (path, member)


def images(data: Path) -> tuple[dict[str, Where], dict[str, Where]]:
    """Images for training and for testing by path, by file name, and by file name without suffix.

    They are distinguished by "train" and "test" in their paths, as both may contain the same name. An image with
    neither word in its path is in both.
    """
    train: dict[str, Where] = {}
    test: dict[str, Where] = {}
    for path, where in _pictures(data):
        is_train, is_test = "train" in path.lower(), "test" in path.lower()
        for index, wanted in ((train, is_train or not is_test), (test, is_test or not is_train)):
            name = path.rpartition("/")[2]
            for key in (path, name, name.rpartition(".")[0]) if wanted else ():
                index.setdefault(key, where)
    return train, test


def pixels(names: pd.Series, index: dict[str, Where], size: int, until: float) -> pd.DataFrame:
    """Grey or colour values (0 to 1) of images scaled to at most ``size`` pixels a side; indexed as ``names``.

    Images that are missing, cannot be read, or come after the time ``until`` have no row.
    """
    found: dict[Any, np.ndarray[Any, Any]] = {}
    archives: dict[Path, zipfile.ZipFile] = {}
    problems = []
    for row, name in names.items():
        if time.monotonic() > until:
            problems.append("the time for reading images is over")
            break
        try:
            path, member = index[name]
            if member is not None and path not in archives:
                archives[path] = zipfile.ZipFile(path)
            with Image.open(path if member is None else io.BytesIO(archives[path].read(member))) as image:
                found[row] = _scaled(image, size)
        except (KeyError, OSError, ValueError, zipfile.BadZipFile) as problem:
            problems.append(f"{type(problem).__name__} {problem}")
    if problems:
        print(f"{len(names) - len(found)} of {len(names)} images are missing, the first because of {problems[0]}")
    return pd.DataFrame.from_dict(found, orient="index").fillna(0)


def _scaled(image: Image.Image, size: int) -> np.ndarray[Any, Any]:
    mode = "L" if image.mode in ("1", "L", "I", "F", "I;16") else "RGB"
    image.draft(mode, (size, size))  # lets JPEG be decoded at a fraction of its size
    small = image.convert(mode)
    return np.asarray(small.resize((size, size)) if min(small.size) > size else small, dtype=np.float32).ravel() / 255
