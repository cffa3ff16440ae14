"""Harvesting the files of an agent that has ended: regular files within limits, following no links.

An interrupted harvest is continued: what has been moved stays where it is, and the rest is moved.
"""

from __future__ import annotations

import contextlib
import errno
import os
import re
import secrets
import shutil
import stat
import time
from pathlib import Path

from common import names, trees
from common.units import size
from sandbox.limits import Limits

REMOVE_SECONDS = 60.0
OUTPUT, RENAMED_OUTPUT = "agent.log", "agent.own.log"
"""The name of the agent's output, and the name that a file of the agent gets instead of it."""
_BYTECODE = re.compile(r"(?:^|/)__pycache__/[^/]+\.pyc\Z")


def harvest(home: Path, log: Path, target: Path, limits: Limits) -> tuple[bool, list[str]]:
    """Move submission, logs and code out of an agent's home; its processes must have ended.

    Files are moved first and checked afterwards, so that they cannot be replaced in between. Special permissions are
    removed. Nothing that an agent leaves makes this fail: what cannot be kept is left out and counted.

    Args:
        home: the agent's home.
        log: the agent's output; becomes ``logs/agent.log``.
        target: created if missing; receives ``submission.csv``, ``logs/`` and ``code/``.
        limits: sizes and numbers of files.

    Returns:
        Whether there is a submission, and messages for the user: why there is none, how many files were left out.

    Raises:
        OSError: the disk is full, or ``target`` cannot be written to.
    """
    for folder in (target, target / "logs", target / "code"):
        folder.mkdir(parents=True, exist_ok=True)
    _keep_output(log, target / "logs" / OUTPUT)
    with contextlib.ExitStack() as stack:
        try:
            with contextlib.suppress(OSError), trees.opened_folder(home.parent) as parent:
                trees.unlock(home.name, parent)
            top = stack.enter_context(trees.opened_folder(home))
        except OSError:
            return (target / "submission.csv").exists(), ["its home was removed"]
        problem = _submission(top, target / "submission.csv", limits)
        notes = [problem] if problem else []
        for name in ("logs", "code"):
            left_out = _folder(top, name, target / name, limits)
            if left_out:
                reasons = "links, special files, names that cannot be stored, or beyond the limits"
                notes.append(f"{left_out} of {name}/ left out ({reasons})")
    return not problem, notes


def _keep_output(log: Path, target: Path) -> None:
    if target.exists():
        return
    try:
        target.hardlink_to(log)  # needs no space, which may have run out
    except FileNotFoundError:  # in the process backend, an agent can remove it
        target.touch()
    except OSError:  # not all file systems have links
        shutil.copyfile(log, target)


def _submission(home: int, target: Path, limits: Limits) -> str | None:
    """Move the submission; returns why there is none, or None."""
    if target.exists():  # an earlier harvest has moved it
        return None
    try:
        with contextlib.suppress(OSError):
            trees.unlock("submission", home)
        with trees.opened_folder("submission", home) as folder:
            try:
                status = os.stat("submission.csv", dir_fd=folder, follow_symlinks=False)
            except OSError:
                return "no submission: the agent wrote no submission/submission.csv"
            if not stat.S_ISREG(status.st_mode):
                return f"no submission: submission.csv is {trees.kind(status.st_mode)}, not a file"
            allowed = min(limits.submission_bytes, limits.disk_bytes or limits.submission_bytes)
            if status.st_size > allowed:  # a file with holes can be longer than the disk limit
                length = size(status.st_size)
                return f"no submission: submission.csv has {length}, more than the limit of {size(allowed)}"
            moved = _take("submission.csv", folder, target)
            return None if moved else "no submission: submission.csv could not be moved"
    except FileNotFoundError:
        return "no submission: submission/ was removed"
    except NotADirectoryError:
        return "no submission: submission/ is no longer a folder"
    except OSError as error:
        if error.errno == errno.ELOOP:
            return "no submission: submission/ is no longer a folder"
        raise


def _folder(home: int, name: str, target: Path, limits: Limits) -> int:
    """Move the regular files below a folder of the home; returns the number of entries left out."""
    with contextlib.suppress(OSError):
        trees.unlock(name, home)
    try:
        folder = os.open(name, trees.FOLDER, dir_fd=home)
    except FileNotFoundError:
        return 0
    except OSError:  # a link, a file, ...
        return 1
    left_out = 0
    try:
        # Files with holes have more bytes than they take on disk, but not once they are uploaded.
        remaining_bytes = min(limits.collected_bytes, limits.disk_bytes or limits.collected_bytes)
        remaining_files = limits.collected_files
        for earlier in _files(target):
            remaining_bytes, remaining_files = remaining_bytes - earlier.stat().st_size, remaining_files - 1
        for entry in trees.walk(folder, enter=_unlocked):
            if entry.is_folder or (name == "code" and _BYTECODE.search(entry.path)):
                continue
            inside = RENAMED_OUTPUT + entry.path[len(OUTPUT) :] if _is_output(name, entry.path) else entry.path
            length = entry.status.st_size
            if (
                not entry.is_file
                or names.problem(inside)
                or length > remaining_bytes
                or remaining_files <= 0
                or not _take(entry.name, entry.folder, target / inside)
            ):
                left_out += 1
            else:
                remaining_bytes, remaining_files = remaining_bytes - length, remaining_files - 1
    finally:
        os.close(folder)
    return left_out


def _files(folder: Path) -> list[Path]:
    return [path for path in folder.rglob("*") if path.is_file() and path != folder / OUTPUT]


def _is_output(folder: str, path: str) -> bool:
    return folder == "logs" and path.split("/", 1)[0] == OUTPUT


def _unlocked(entry: trees.Entry) -> bool:
    """The agent may have removed its own permissions, without which files cannot be moved out of a folder."""
    with contextlib.suppress(OSError):
        trees.unlock(entry.name, entry.folder)
    return True


def _take(name: str, folder: int, target: Path) -> bool:
    """Move a file, unless it is no longer a regular file or the target exists; returns whether it was moved."""
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        if os.path.lexists(target):
            return False
        try:
            os.rename(name, target, src_dir_fd=folder)
        except OSError as error:
            if error.errno != errno.EXDEV:
                raise
            return _copy(name, folder, target)
        if not stat.S_ISREG(target.lstat().st_mode):
            with trees.opened_folder(target.parent) as parent:
                trees.remove(target.name, parent, time.monotonic() + REMOVE_SECONDS)
            return False
        target.chmod(0o644)
    except OSError as error:
        if error.errno in FULL:
            raise
        return False  # e.g. a path too long to be used
    return True


FULL = (errno.ENOSPC, errno.EDQUOT)


def _copy(name: str, folder: int, target: Path) -> bool:
    """Copy a file from another file system, and remove the original."""
    part = target.parent / f".{secrets.token_hex(8)}.part"
    try:
        with trees.opened_file(name, folder) as source, part.open("wb") as copy:
            for piece in trees.pieces(source, os.fstat(source).st_size):
                copy.write(piece)
        part.chmod(0o644)
        part.replace(target)
    finally:
        part.unlink(missing_ok=True)
    os.unlink(name, dir_fd=folder)
    return True
