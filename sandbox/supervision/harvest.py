"""Harvesting the files of an agent that has ended: regular files within limits, following no links.

An interrupted harvest is continued: what has been moved stays where it is, and the rest is moved.
"""

from __future__ import annotations

import contextlib
import errno
import os
import re
import shutil
import stat
from pathlib import Path

from common import names, trees
from common.units import size
from sandbox.limits import Limits
from sandbox.supervision import misplaced
from sandbox.supervision.moving import FULL, move

FINAL, FINAL_BYTES = "final.txt", 4096
"""A file in the folder for submissions with which an agent chooses among them, and its size at most."""
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
        target: created if missing; receives ``submission.csv``, ``final.txt``, ``logs/`` and ``code/``. Without a
            submission, it also receives the files that may be meant as one.
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
        if final_problem := _final(top, target / FINAL):
            notes.append(final_problem)
        for name in ("logs", "code"):
            left_out = _folder(top, name, target / name, limits)
            if left_out:
                reasons = "links, special files, names that cannot be stored, or beyond the limits"
                notes.append(f"{left_out} of {name}/ left out ({reasons})")
        if problem:
            notes[1:1] = misplaced.keep(home, top, target, limits)
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
            moved = move("submission.csv", folder, target)
            return None if moved else "no submission: submission.csv could not be moved"
    except FileNotFoundError:
        return "no submission: submission/ was removed"
    except NotADirectoryError:
        return "no submission: submission/ is no longer a folder"
    except OSError as error:
        if error.errno == errno.ELOOP:
            return "no submission: submission/ is no longer a folder"
        raise


def _final(home: int, target: Path) -> str | None:
    """Move the final choice, if there is one; returns why it is ignored, or None."""
    if target.exists():  # an earlier harvest has moved it
        return None
    try:
        with trees.opened_folder("submission", home) as folder:
            status = os.stat(FINAL, dir_fd=folder, follow_symlinks=False)
            if not stat.S_ISREG(status.st_mode):
                return f"{FINAL} is ignored: it is {trees.kind(status.st_mode)}, not a file"
            if status.st_size > FINAL_BYTES:
                return f"{FINAL} is ignored: it has {size(status.st_size)}"
            move(FINAL, folder, target)
    except OSError as error:
        if error.errno in FULL:
            raise
    return None


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
                or not move(entry.name, entry.folder, target / inside)
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
