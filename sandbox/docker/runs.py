"""Identify a run on this machine: the lock of its orchestrator, and the labels and names of its containers."""

from __future__ import annotations

import contextlib
import hashlib
import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from common.locks import acquire
from sandbox.docker.engine import AGENT, PREFIX, RUN, WORKDIR, engine_errors, labelled
from sandbox.supervision.control import Layout

if TYPE_CHECKING:
    from docker import DockerClient


@contextlib.contextmanager
def unclaimed(layout: Layout) -> Iterator[bool]:
    """Whether no orchestrator holds the run's lock. If so, this process holds the lock during the block."""
    try:
        descriptor = acquire(layout.lock)
    except OSError:  # the work directory is gone, so no orchestrator can come back for the run
        yield True
        return
    try:
        yield descriptor is not None
    finally:
        if descriptor is not None:
            os.close(descriptor)


def name_of(workdir: Path, run_id: str) -> str:
    """Name of the run's container: the run id, made unique by a hash of the work directory."""
    readable = "".join(character if character.isalnum() or character in "._-" else "-" for character in run_id)[:80]
    return f"mlebench-{readable}-{hashlib.blake2b(os.fsencode(workdir), digest_size=4).hexdigest()}"


def find(client: DockerClient, workdir: Path, role: str = AGENT) -> Any | None:
    """The container of the run with that role, in any state, or None."""
    with engine_errors(f"the container of {workdir.name} cannot be looked up"):
        containers = client.containers.list(
            all=True, filters=labelled(workdir=str(workdir), role=role), ignore_removed=True
        )
    return containers[0] if containers else None


def labels_of(run_id: str, workdir: Path, further: dict[str, str]) -> dict[str, str]:
    """Labels of all containers of a run."""
    return {RUN: run_id, WORKDIR: str(workdir), **{PREFIX + name: value for name, value in further.items()}}
