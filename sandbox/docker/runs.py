"""A run's traces on this machine: the lock of the orchestrator that has it, its labels, its leftovers."""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sandbox.control import Layout
from sandbox.docker.engine import AGENT, PREFIX, ROLE, RUN, WORKDIR, in_words, labelled
from sandbox.docker.network import remove, socket_folder
from sandbox.docker.watch import end

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


@dataclass(frozen=True)
class Orphan:
    """Containers and a network of a run that no orchestrator waits for."""

    run_id: str
    workdir: Path
    status: str
    """Of the agent's container: running, exited, ...; ``network`` if only that is left."""
    started_at: str

    def __str__(self) -> str:
        return f"run {self.run_id} ({self.status}, started {self.started_at or 'never'}, work directory {self.workdir})"


def orphans(client: DockerClient) -> list[Orphan]:
    """Runs with a container or network on this engine that no orchestrator of this machine has.

    A run whose orchestrator was killed is among them until the orchestrator is back.
    """
    found: dict[Path, Orphan] = {}
    ours: dict[str, str | list[str] | bool] = {"label": [RUN]}
    with in_words("our containers cannot be listed"):
        for network in client.networks.list(filters=ours):
            labels = network.attrs["Labels"]
            workdir = Path(labels[WORKDIR])
            found[workdir] = Orphan(labels[RUN], workdir, "network", "")
        for container in client.containers.list(all=True, filters=ours, ignore_removed=True):
            workdir = Path(container.labels[WORKDIR])
            if container.labels.get(ROLE) == AGENT or workdir not in found or found[workdir].status == "network":
                began = container.attrs["State"]["StartedAt"]
                found[workdir] = Orphan(container.labels[RUN], workdir, container.status, began)
    waiting = []
    for orphan in found.values():
        with free(Layout(orphan.workdir)) as nobody:
            if nobody:
                waiting.append(orphan)
    return waiting


def end_orphans(client: DockerClient) -> list[Orphan]:
    """End and remove them; their work directories stay (what they left can be read, and a rerun begins anew)."""
    ended = []
    for orphan in orphans(client):
        with free(Layout(orphan.workdir)) as nobody:
            if not nobody:
                continue
            container = find(client, orphan.workdir)
            if container is not None:
                end(container, 3.0)
            remove(client, orphan.workdir)
            with contextlib.suppress(OSError):
                socket_folder(orphan.workdir).rmdir()
            ended.append(orphan)
    return ended


def labels_of(run_id: str, workdir: Path, more: dict[str, str]) -> dict[str, str]:
    """Labels of everything of a run."""
    return {RUN: run_id, WORKDIR: str(workdir), **{PREFIX + name: value for name, value in more.items()}}
