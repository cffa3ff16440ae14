"""What a file system tells about the order in which files were written, which may be that of their labels.

Copies are written in the order of the archive, where files of one class often follow one another. Where a test set has
other names or folders than the download, agents would see that order in `ls -i` or `stat`: numbers of inodes and times
of files increase with it, and a hard link has the inode of the file in the download. Such files are made once more in
the order of their new names. Nothing is to be done in an object store, whose files are fetched in that order.
"""

from __future__ import annotations

import contextlib
import os
import shutil
from collections import defaultdict
from typing import TYPE_CHECKING

from common.cloning import clone

if TYPE_CHECKING:
    import pyarrow as pa

    from storage.writers import Destination

_TEST = "test"
"""What is in the path of the files whose labels are hidden."""
_TIME = 315532800
"""The modification time of these files, as in zip archives: 1980-01-01 in seconds since 1970."""


_AT_ONCE = 1_000
"""Files that exist twice for a moment. Later ones may get inodes of earlier ones, of which only the lot is known."""


def remove_traces(destination: Destination, manifest: pa.Table) -> int:
    """Write public test files whose order is not that of their sources anew, in the order of their paths.

    Returns their number. The bytes stay the same. Each file is replaced at once, so this can be repeated.
    """
    if not destination.local:
        return 0
    paths: dict[str, list[str]] = defaultdict(list)
    sources: dict[str, list[str]] = defaultdict(list)
    columns = (manifest[name].to_pylist() for name in ("part", "path", "source"))
    for part, path, source in zip(*columns, strict=True):  # sorted by part and path
        if part == "public" and _TEST in path.lower() and "/" in path:
            paths[top := path.partition("/")[0]].append(path)
            sources[top].append(source)
    moved = [path for top in paths if _disordered(sources[top]) for path in paths[top]]
    for start in range(0, len(moved), _AT_ONCE):
        _make_again(destination, [destination.path(f"public/{path}") for path in moved[start : start + _AT_ONCE]])
    return len(moved)


def _disordered(sources: list[str]) -> bool:
    """Whether files with these sources may have been written in another order; that of derived files is not known."""
    return len(sources) > 1 and (sources != sorted(sources) or any(source.endswith("()") for source in sources))


def _make_again(destination: Destination, paths: list[str]) -> None:
    """Give these files other inodes, in this order. All are made before one is replaced, which would free its inode."""
    drafts: dict[str, str] = {}
    try:
        for path in paths:
            drafts[path] = draft = destination.draft(path)
            if not clone(path, draft):
                shutil.copyfile(path, draft)
        for path in paths:
            os.utime(drafts[path], (_TIME, _TIME))
            os.replace(drafts.pop(path), path)  # noqa: PTH105
    except BaseException:
        for draft in drafts.values():
            with contextlib.suppress(OSError):
                os.unlink(draft)  # noqa: PTH108
        raise
