"""List the files below a folder of any fsspec file system, page by page."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

_PAGE = 1_000  # entries of one request; S3 allows no more


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
    bucket, key, _ = fs.split_path(prefix)
    more: dict[str, str] = {}
    while True:
        page = fs.call_s3("list_objects_v2", Bucket=bucket, Prefix=key, MaxKeys=_PAGE, **more)
        for each in page.get("Contents", ()):
            if not each["Key"].endswith("/"):  # consoles create such objects for empty folders
                yield each["Key"][len(key) :], each["Size"]
        if not page.get("IsTruncated"):
            return
        more = {"ContinuationToken": page["NextContinuationToken"]}
