"""A run's traces on this machine: the lock of the orchestrator that has it, its labels, its container."""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sandbox.docker.engine import AGENT, PREFIX, RUN, WORKDIR, in_words, labelled
from sandbox.supervision.control import Layout

if TYPE_CHECKING:
    from docker import DockerClient


def lock(layout: Layout) -> int | None:
    """Take the run for this process: an open descriptor, to be kept as long; ``None`` if another process has it."""
    descriptor = os.open(layout.lock, os.O_RDWR | os.O_CREAT, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(descriptor)
        return None
    return descriptor


@contextlib.contextmanager
def free(layout: Layout) -> Iterator[bool]:
    """Whether no orchestrator has the run; if so, none can take it within the block."""
    try:
        descriptor = lock(layout)
    except OSError:  # the work directory is gone: nobody can come back for it
        yield True
        return
    try:
        yield descriptor is not None
    finally:
        if descriptor is not None:
            os.close(descriptor)


def name_of(workdir: Path, run_id: str) -> str:
    """Name of the run's container and network: the run id to read, the work directory to be unique."""
    readable = "".join(c if c.isalnum() or c in "._-" else "-" for c in run_id)[:80]
    return f"mlebench-{readable}-{hashlib.blake2b(os.fsencode(workdir), digest_size=4).hexdigest()}"


def find(client: DockerClient, workdir: Path) -> Any | None:
    """The run's agent container, in whatever state."""
    with in_words(f"the container of {workdir.name} cannot be looked up"):
        found = client.containers.list(
            all=True, filters=labelled(workdir=str(workdir), role=AGENT), ignore_removed=True
        )
    return found[0] if found else None


def labels_of(run_id: str, workdir: Path, more: dict[str, str]) -> dict[str, str]:
    """Labels of everything of a run."""
    return {RUN: run_id, WORKDIR: str(workdir), **{PREFIX + name: value for name, value in more.items()}}
