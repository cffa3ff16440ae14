"""Runs that no orchestrator of this machine waits for, and that none has to come back for."""

from __future__ import annotations

import contextlib
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sandbox.docker.engine import AGENT, ROLE, RUN, WORKDIR, in_words
from sandbox.docker.network import remove, socket_folder
from sandbox.docker.results import finish, undo_collection
from sandbox.docker.runs import free
from sandbox.docker.watch import Watch, moment
from sandbox.errors import BackendError
from sandbox.limits import Limits
from sandbox.supervision import control
from sandbox.world.files import remove_tree

if TYPE_CHECKING:
    from docker import DockerClient


@dataclass(frozen=True)
class Orphan:
    """Containers and a network of a run that no orchestrator waits for."""

    run_id: str
    workdir: Path
    status: str
    """Of the agent's container: running, exited, ...; ``none`` if only its network or forwarder is left."""
    started_at: str
    reason: str
    """Why nobody has to come back for it."""

    def __str__(self) -> str:
        began = self.started_at or "never"
        return f"run {self.run_id} ({self.status}, started {began}, work directory {self.workdir}): {self.reason}"


def orphans(client: DockerClient) -> list[Orphan]:
    """Runs on this engine that no orchestrator has, and that are over or unknown.

    Not among them: a run whose orchestrator died, but which goes on within its time limit. The orchestrator takes it up
    again when it is started again; failing that, the run ends at its limit, and is an orphan from then on.
    """
    found = []
    for (run_id, workdir), container in _ours(client).items():
        layout = control.Layout(workdir)
        with free(layout) as nobody:
            reason = _why_nobody_comes(run_id, layout, container) if nobody else None
        if reason:
            state = container.attrs["State"] if container is not None else {"Status": "none", "StartedAt": ""}
            found.append(Orphan(run_id, workdir, state["Status"], state["StartedAt"], reason))
    return found


def end_orphans(client: DockerClient) -> list[Orphan]:
    """End and remove them; returns those.

    What their agents left is collected first, so that the same run, started again, has its result. Where it cannot be
    known whose it was, nothing is collected.
    """
    ended = []
    for orphan in orphans(client):
        layout = control.Layout(orphan.workdir)
        with free(layout) as nobody:
            if not nobody:  # somebody has come back meanwhile
                continue
            container = _ours(client).get((orphan.run_id, orphan.workdir))
            if container is not None:
                _collect(container, orphan, layout)
            remove(client, orphan.workdir)  # with force: what still runs is killed
            with contextlib.suppress(BackendError):
                remove_tree(socket_folder(orphan.workdir))
            ended.append(orphan)
    return ended


def _ours(client: DockerClient) -> dict[tuple[str, Path], Any]:
    """Every run with something on this engine, with the agent's container; None where that is not there."""
    ours: dict[str, str | list[str] | bool] = {"label": [RUN]}
    found: dict[tuple[str, Path], Any] = {}
    with in_words("our containers cannot be listed"):
        for network in client.networks.list(filters=ours):
            found.setdefault(_whose(network.attrs["Labels"]))
        for container in client.containers.list(all=True, filters=ours, ignore_removed=True):
            found.setdefault(_whose(container.labels))
            if container.labels.get(ROLE) == AGENT:
                found[_whose(container.labels)] = container
    return found


def _whose(labels: dict[str, str]) -> tuple[str, Path]:
    return labels[RUN], Path(labels[WORKDIR])


def _why_nobody_comes(run_id: str, layout: control.Layout, container: Any | None) -> str | None:
    """In words, with the run's lock held; None if an orchestrator that comes back would go on with it."""
    task = control.read(layout.task, control.Task)
    if task is None or task.run_id != run_id:
        return "its work directory knows nothing of it"
    if container is None:
        return "only its network is left"
    if layout.stop.exists():
        return "it was to be stopped"
    if control.read(layout.outcome, control.Outcome):
        return "its result has been collected"
    if container.status == "created":
        return "it was never started"
    state = container.attrs["State"]
    if not state["Running"]:
        return "it has ended"
    seconds = (datetime.now(UTC) - moment(state["StartedAt"])).total_seconds()
    return "its time is over" if seconds >= Limits(**task.limits).time_limit_seconds else None


def _collect(container: Any, orphan: Orphan, layout: control.Layout) -> None:
    task = control.read(layout.task, control.Task)
    collected = control.read(layout.outcome, control.Outcome)
    if task is None or task.run_id != orphan.run_id or collected or orphan.status == "created":
        return
    undo_collection(layout)
    with contextlib.suppress(BackendError):  # what cannot be collected must not keep it from being ended
        watched = Watch(container, layout, Limits(**task.limits), lambda: None)
        finish(watched, watched.until_end(), layout)
