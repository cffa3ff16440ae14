"""Processes that tests look at, and that may end at any moment."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable

import psutil


def living(processes: Iterable[psutil.Process]) -> list[psutil.Process]:
    """Those that have not ended. One whose parent has died stays a zombie until the system's first process looks."""
    found: list[psutil.Process] = []
    for each in processes:
        with contextlib.suppress(psutil.NoSuchProcess):
            if each.is_running() and each.status() != psutil.STATUS_ZOMBIE:
                found.append(each)
    return found


def command_of(process: psutil.Process) -> str:
    """The command line of a process, with blanks between its words; empty if it has ended."""
    with contextlib.suppress(psutil.NoSuchProcess):
        return " ".join(process.cmdline())
    return ""


def descendants(process: psutil.Process, word: str = "") -> list[psutil.Process]:
    """The children of a process and theirs, whose command lines contain `word`; none if it has ended."""
    with contextlib.suppress(psutil.NoSuchProcess):
        return [each for each in process.children(recursive=True) if word in command_of(each)]
    return []
