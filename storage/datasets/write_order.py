"""Hides the order in which files were written, which a file system shows and which may be that of their labels.

Copies are written in the order of the archive, where files of one class often follow one another. Where a test set has
other names or folders than the download, agents would see that order in `ls -i` or `stat`: numbers of inodes and times
of files increase with it, and a hard link has the inode of the file in the download. Such files are written in the
order of their new names: at once where all of a folder are members of one zip on a local disk (`written_in_order`),
otherwise once more at the end (`remove_traces`). Nothing is to be done in an object store, whose files are fetched in
that order.
"""

from __future__ import annotations

import contextlib
import os
import shutil
from collections import defaultdict
from collections.abc import Iterable
from typing import TYPE_CHECKING

from common.cloning import clone
from competitions.preparing.archives.zips import ZipContainer
from competitions.preparing.download import Download
from storage.datasets.execute import HIDDEN_MTIME
from storage.datasets.plan import Copies, Same, Task

if TYPE_CHECKING:
    import pyarrow as pa

    from storage.writers import Destination

_TEST = "test"
"""What is in the path of the files whose labels are hidden."""
BATCH_FILES = 1_000
"""Files that are replaced together. Later files may get inodes of earlier files, which shows only their batch."""


def written_in_order(tasks: Iterable[Task | Copies | Same], download: Download) -> list[Task | Copies | Same]:
    """Separate test files that have to be written in the order of their names: they are `Copies` marked as `hidden`.

    For each top-level folder of a dataset, this is done if all test files are members of one zip on a local disk. For a
    sequential archive, it would need another pass.
    """
    tasks = list(tasks)
    folders = [_test_folders(task) for task in tasks]
    origins: dict[str, set[str | None]] = defaultdict(set)
    for task, tops in zip(tasks, folders, strict=True):
        for top in {*tops} - {""}:
            origins[top].add(task.archive if isinstance(task, Copies) else None)
    separate_folders = {
        top for top, (label, *other_labels) in origins.items() if not other_labels and _in_any_order(label, download)
    }
    works: list[Task | Copies | Same] = []
    for task, tops in zip(tasks, folders, strict=True):
        works += _set_apart(task, tops, separate_folders) if isinstance(task, Copies) else [task]
    return works


def _in_any_order(label: str | None, download: Download) -> bool:
    """Whether members of this archive, if it is one, can be read in any order at no cost."""
    container = None if label is None else download.view(label).container
    return isinstance(container, ZipContainer) and container.on_disk


def _test_folders(task: Task | Copies | Same) -> list[str]:
    """The top-level folder of each of its public test files; empty for other files."""
    match task:
        case Copies():
            return list(map(_test_folder, task.parts, task.paths))
        case Same():
            return list(map(_test_folder, task.rows[0], task.rows[1]))
        case Task():
            return [_test_folder(task.part, task.path)]


def _set_apart(copies: Copies, folders: list[str], separate_folders: set[str]) -> list[Copies]:
    rows: dict[str, list[int]] = defaultdict(list)
    for row, top in enumerate(folders):
        rows[top if top in separate_folders else ""].append(row)
    separated = []
    for top in sorted(rows.keys() - {""}):
        ordered = sorted(rows[top], key=copies.paths.__getitem__)
        if _disordered([copies.names[row] for row in ordered]):
            separated.append(copies.at(ordered)._replace(hidden=True))
        else:
            rows[""] += rows[top]
    remaining = rows.get("", [])
    return [*([copies if not separated else copies.at(sorted(remaining))] if remaining else []), *separated]


def _test_folder(part: str, path: str) -> str:
    """The top-level folder of a public test file; empty for other files."""
    return path.partition("/")[0] if part == "public" and _TEST in path.lower() and "/" in path else ""


def remove_traces(destination: Destination, manifest: pa.Table) -> int:
    """Rewrite public test files whose order is not that of their sources, in the order of their paths.

    Returns their number. The bytes stay the same. Each file is replaced at once, so this can be repeated.
    """
    import pyarrow.compute as pc

    if not destination.local:
        return 0
    paths: dict[str, list[str]] = defaultdict(list)
    sources: dict[str, list[str]] = defaultdict(list)
    tests = manifest.filter(pc.match_substring(manifest["path"], _TEST, ignore_case=True))  # and perhaps some others
    columns = (tests[name].to_pylist() for name in ("part", "path", "source"))
    for part, path, source in zip(*columns, strict=True):  # sorted by part and path
        if top := _test_folder(part, path):
            paths[top].append(path)
            sources[top].append(source)
    tops = [top for top in paths if _disordered(sources[top])]
    names = [destination.path(f"public/{path}") for top in tops for path in paths[top]]
    moved = [name for name in names if not _in_order(name)]
    lots = -(-len(moved) // BATCH_FILES)
    for lot in range(lots):  # of equal sizes: what a last one of a few files had would stay free, and tell of these
        _make_again(destination, moved[len(moved) * lot // lots : len(moved) * (lot + 1) // lots])
    return len(moved)


def _in_order(path: str) -> bool:
    """Whether a file was written in the order of names: it has the time of such files, and no other hard link."""
    stat = os.stat(path)  # noqa: PTH116
    return stat.st_mtime == HIDDEN_MTIME and stat.st_nlink == 1


def _disordered(sources: list[str]) -> bool:
    """Whether files with these sources may have been written in another order; that of derived files is not known."""
    return len(sources) > 1 and (sources != sorted(sources) or any(source.endswith("()") for source in sources))


def _make_again(destination: Destination, paths: list[str]) -> None:
    """Give these files new inodes, in this order. All are created before one is replaced, which frees its inode."""
    drafts: dict[str, str] = {}
    cloning = True  # a disk that cannot clone one file cannot clone any
    try:
        for path in paths:
            drafts[path] = draft = destination.draft(path)
            cloning = cloning and clone(path, draft)
            if not cloning:
                shutil.copyfile(path, draft)
        for path in paths:
            os.utime(drafts[path], (HIDDEN_MTIME, HIDDEN_MTIME))
            os.replace(drafts.pop(path), path)  # noqa: PTH105
    except BaseException:
        for draft in drafts.values():
            with contextlib.suppress(OSError):
                os.unlink(draft)  # noqa: PTH108
        raise
