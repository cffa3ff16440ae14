"""List the files below a folder of any fsspec file system, page by page."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from typing import Any

_PAGE_ENTRIES = 1_000  # entries of one request; S3 allows no more


def files_below(fs: Any, root: str) -> Iterator[tuple[str, int]]:
    """Yield (path relative to `root`, size in bytes) of each file below `root`, sorted by code point.

    On S3 only one page of entries is in memory. fsspec's own `find` keeps a dictionary with a dozen fields of
    every file, which takes gigabytes for a million of them.
    """
    prefix = root.rstrip("/") + "/"
    if "s3" not in fs.protocol:
        for path, info in sorted(fs.find(root, detail=True).items()):
            yield path[len(prefix) :], info["size"]
        return
    _, key, _ = fs.split_path(prefix)
    for page in s3_pages(fs, root):
        for entry in page:
            if not entry["Key"].endswith("/"):  # consoles create such objects for empty folders
                yield entry["Key"][len(key) :], entry["Size"]


def s3_pages(fs: Any, root: str, entries: int | None = None) -> Iterator[list[dict[str, Any]]]:
    """Yield the objects below `root` on S3 in pages of a listing, of at most `entries` each if given."""
    bucket, key, _ = fs.split_path(root.rstrip("/") + "/")
    entries = entries or _PAGE_ENTRIES
    continuation: dict[str, str] = {}
    while True:
        page = fs.call_s3("list_objects_v2", Bucket=bucket, Prefix=key, MaxKeys=entries, **continuation)
        yield page.get("Contents", [])
        if not page.get("IsTruncated"):
            return
        continuation = {"ContinuationToken": page["NextContinuationToken"]}


def sizes_below(fs: Any, root: str) -> Iterator[int]:
    """Yield the size in bytes of each file below `root`, in any order, with little memory."""
    if fs.protocol == "file" or "file" in fs.protocol:
        yield from sizes_on_disk(root)
    else:
        yield from (size for _, size in files_below(fs, root))


def sizes_on_disk(folder: str) -> Iterator[int]:
    """Yield the size in bytes of each file below a local folder. Links, and what vanishes meanwhile, are left out."""
    for entry in files_on_disk(folder):
        with contextlib.suppress(FileNotFoundError):
            yield entry.stat(follow_symlinks=False).st_size


def files_on_disk(folder: str) -> Iterator[os.DirEntry[str]]:
    """Yield each file below a local folder, in any order. `os.walk` and `Path.rglob` make lists of whole folders."""
    stack = [folder]
    while stack:
        with contextlib.suppress(FileNotFoundError, NotADirectoryError), os.scandir(stack.pop()) as entries:
            for entry in entries:
                if entry.is_dir(follow_symlinks=False):
                    stack.append(entry.path)
                elif entry.is_file(follow_symlinks=False):
                    yield entry
