"""Files that look like a submission but do not lie where it belongs: they are kept with the run, and named.

They are not graded, because only ``submission/submission.csv`` is a submission. But they may be a day of computing.
"""

from __future__ import annotations

import contextlib
import heapq
import itertools
import os
import posixpath
import re
import stat
import time
from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path

from common import names, trees
from common.units import listed, size
from sandbox.limits import Limits
from sandbox.supervision.moving import move

FOLDER = "misplaced"
"""Name of the folder of a run for these files, which keep their paths below it."""
MAX_FILES = 1000
"""Number of files that are kept: those that look most like a submission. Some programs write one in many parts."""
_MAX_ENTRIES, _MAX_SECONDS = 1_000_000, 60.0
_MAX_PATH = 4096
"""Maximum length of a path on Linux (``PATH_MAX``)."""
_CONTAINER_HOME = "/home"
_LIKE_SUBMISSION = re.compile(r"subm|sumb|(?<![a-z])(subs?|preds?|answers?)(?![a-z])|predict", re.IGNORECASE)
_DATA = re.compile(
    r"\.(csv|tsv|txt|parquet|pq|feather|arrow|jsonl?|xlsx?|np[yz]|pkl|pickle|zip|tar|t?gz|bz2|xz|zst|7z)\b",
    re.IGNORECASE,
)
_Rank = tuple[bool, bool, bool, float, str]
"""Smaller for files that are more likely meant; the last part is the path."""


def keep(home: Path, top: int, target: Path, limits: Limits) -> list[str]:
    """Move the files that may be meant as the submission out of an agent's home; returns messages for the user.

    Links are not followed. What cannot be kept is named.

    Args:
        home: the agent's home, whose ``logs/`` and ``code/`` have been harvested.
        top: its descriptor.
        target: the folder with the harvested files; `FOLDER` is made in it.
        limits: sizes and numbers of files.

    Raises:
        OSError: the disk is full.
    """
    # Files with holes have more bytes than they take on disk, but not once they are uploaded.
    largest = limits.submission_bytes + limits.collected_bytes
    remaining_bytes = min(largest, limits.disk_bytes or largest)
    remaining_files = min(MAX_FILES, limits.collected_files)
    kept, not_kept = [], []
    for earlier in sorted((target / FOLDER).rglob("*")):
        if earlier.is_file():  # from a harvest that a full disk has ended
            remaining_bytes, remaining_files = remaining_bytes - earlier.stat().st_size, remaining_files - 1
            kept.append(earlier.relative_to(target / FOLDER).as_posix())
    linked = list(_linked(home, top))
    linked_paths = {rank[-1] for rank in linked}
    found = (rank for rank in _found(top) if rank[-1] not in linked_paths)
    # Only as many ranks as are needed are kept: an agent can make a million files with long paths.
    for rank in heapq.nsmallest(remaining_files, itertools.chain(linked, found)):
        path = rank[-1]
        stored = path if names.problem(path) is None else f"renamed-{sha256(os.fsencode(path)).hexdigest()[:16]}"
        with contextlib.ExitStack() as stack:
            try:
                folder, status = _opened(top, path, stack)
            except OSError:
                not_kept.append(_shown(path))
                continue
            # Another name of the file may be in use elsewhere, so it gets neither this file's place nor permissions.
            if status.st_size <= remaining_bytes and move(
                posixpath.basename(path), folder, target / FOLDER / stored, copied=status.st_nlink > 1
            ):
                remaining_bytes -= status.st_size
                kept.append(_shown(path))
            else:
                not_kept.append(f"{_shown(path)} ({size(status.st_size)})")
    return _messages(kept, _harvested(target), not_kept)


def _messages(kept: list[str], harvested: list[str], not_kept: list[str]) -> list[str]:
    messages = []
    if kept:
        messages.append(f"files that look like a submission are kept in misplaced/ of the run: {listed(kept)}")
    if harvested:
        messages.append(f"files in logs/ and code/ that look like a submission: {listed(harvested)}")
    if not_kept:
        messages.append(f"files that look like a submission but could not be kept: {listed(not_kept)}")
    return messages


def _found(top: int) -> Iterator[_Rank]:
    """The regular files in the home that look like a submission, as far as they are found in time.

    Folders whose path is longer than a program can use are not searched.
    """
    started, deadline = _start(top), time.monotonic() + _MAX_SECONDS
    entries = trees.walk(top, skip=frozenset({"data"}), enter=_is_entered)
    for number, entry in enumerate(itertools.islice(entries, _MAX_ENTRIES)):
        if number % 1000 == 0 and time.monotonic() > deadline:
            return
        path = entry.path
        own_file = path.startswith("agent/") and entry.status.st_mtime_ns < started
        if entry.is_file and not own_file and _is_meant(path):
            yield _rank(path, entry.status)


def _is_entered(folder: trees.Entry) -> bool:
    return len(folder.path) <= _MAX_PATH and trees.readable(folder)


def _start(top: int) -> int:
    """The time at which the home was ready for the agent: the files of its definition are older."""
    with contextlib.suppress(OSError):
        return os.stat("instructions.txt", dir_fd=top, follow_symlinks=False).st_mtime_ns
    return 0


def _linked(home: Path, top: int) -> Iterator[_Rank]:
    """The regular file in the home to which ``submission/submission.csv`` is a link, whatever its name is."""
    with contextlib.suppress(OSError), contextlib.ExitStack() as stack:
        folder = stack.enter_context(trees.opened_folder("submission", top))
        destination = posixpath.join(os.fspath(home), "submission", os.readlink("submission.csv", dir_fd=folder))
        for beginning in (os.fspath(home), _CONTAINER_HOME):
            path = posixpath.relpath(destination, beginning)
            if not path.startswith(("../", "data/")):
                _, status = _opened(top, path, stack)
                yield _rank(path, status, linked=True)
                return


def _opened(top: int, path: str, stack: contextlib.ExitStack) -> tuple[int, os.stat_result]:
    """The open folder of a regular file, no part of whose path is a link, and the file's status; or `OSError`."""
    *folders, name = path.split("/")
    folder = trees.folder_below(top, folders)
    stack.callback(os.close, folder)
    status = os.stat(name, dir_fd=folder, follow_symlinks=False)
    if not stat.S_ISREG(status.st_mode):
        raise trees.NotRegular(f"{path} is {trees.kind(status.st_mode)}")
    return folder, status


def _is_meant(path: str) -> bool:
    """Whether a file may be meant as the submission.

    >>> [_is_meant(path) for path in ("Submission.csv.gz", "out/my_preds.parquet", "submission/x", "submission.csv/0")]
    [True, True, True, True]
    >>> [_is_meant(path) for path in ("train.csv", "code/submission.py", "subset.csv")]
    [False, False, False]
    """
    if path.startswith("submission/"):
        return True
    *folders, name = path.split("/")
    is_data = "." not in name or _DATA.search(name) is not None
    return is_data and any(_LIKE_SUBMISSION.search(part) for part in (*folders, name))


def _rank(path: str, status: os.stat_result, *, linked: bool = False) -> _Rank:
    name = posixpath.basename(path).lower()
    return (
        not linked and path != "submission/submission.csv",
        not path.startswith("submission/"),
        not name.startswith("submission"),
        -status.st_mtime,
        path,
    )


def _harvested(target: Path) -> list[str]:
    """The files among the harvested logs and code that look like a submission, the latest first."""
    ranks = []
    for part in ("code", "logs"):
        for path in (target / part).rglob("*"):
            name = path.relative_to(target).as_posix()
            if _is_meant(name) and path.is_file():
                ranks.append(_rank(name, path.stat()))
    return [_shown(rank[-1]) for rank in heapq.nsmallest(MAX_FILES, ranks)]


def _shown(path: str) -> str:
    return path if path.isprintable() else names.shown(path)
