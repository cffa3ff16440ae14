"""Orphaned runs: no orchestrator on this machine waits for their containers or has a reason to attach to them again."""

from __future__ import annotations

import contextlib
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sandbox.docker.engine import AGENT, ROLE, RUN, WORKDIR, engine_errors, parse_time
from sandbox.docker.network import remove
from sandbox.docker.runs import unclaimed
from sandbox.docker.watch import Watch
from sandbox.errors import BackendError
from sandbox.host.folder import socket_folder
from sandbox.limits import Limits
from sandbox.supervision import control
from sandbox.supervision.endings import conclude
from sandbox.world.files import remove_tree

if TYPE_CHECKING:
    from docker import DockerClient


@dataclass(frozen=True)
class Orphan:
    """A run with containers that no orchestrator waits for."""

    run_id: str
    workdir: Path
    status: str
    """Status of the agent's container: running, exited, ...; ``none`` if only a forwarder is left."""
    started_at: str
    reason: str
    """Why no orchestrator needs to attach to it again."""

    def __str__(self) -> str:
        started = self.started_at or "never"
        return f"run {self.run_id} ({self.status}, started {started}, work directory {self.workdir}): {self.reason}"


def orphans(client: DockerClient) -> list[Orphan]:
    """Runs on this engine that no orchestrator waits for, and that have ended or are unknown.

    A run that is still within its time limit is not an orphan, even if its orchestrator died: the orchestrator attaches
    to the run when it is started again. If that does not happen, the run ends at its limit and is then an orphan.
    """
    orphaned = []
    for (run_id, workdir), container in _runs(client).items():
        layout = control.Layout(workdir)
        with unclaimed(layout) as is_unclaimed:
            reason = _why_orphaned(run_id, layout, container) if is_unclaimed else None
        if reason:
            state = container.attrs["State"] if container is not None else {"Status": "none", "StartedAt": ""}
            orphaned.append(Orphan(run_id, workdir, state["Status"], state["StartedAt"], reason))
    return orphaned


def end_orphans(client: DockerClient) -> list[Orphan]:
    """End and remove orphaned runs; returns them.

    The agents' files are harvested first, so that the next ``start`` of the same run finds its result. Unknown runs are
    removed without a harvest.
    """
    ended = []
    for orphan in orphans(client):
        layout = control.Layout(orphan.workdir)
        with unclaimed(layout) as is_unclaimed:
            if not is_unclaimed:  # an orchestrator has attached to it in the meantime
                continue
            container = _runs(client).get((orphan.run_id, orphan.workdir))
            if container is not None:
                _harvest(container, orphan, layout)
            remove(client, orphan.workdir)  # kills the processes that are still running
            with contextlib.suppress(BackendError):
                remove_tree(socket_folder(orphan.workdir))
            ended.append(orphan)
    return ended


def end(client: DockerClient, workdir: Path) -> bool:
    """End a run that is not needed any more, and remove everything of it; returns False if an orchestrator has it."""
    with unclaimed(control.Layout(workdir)) as is_unclaimed:
        if not is_unclaimed:
            return False
        remove(client, workdir)
        remove_tree(socket_folder(workdir))
        remove_tree(workdir)
    return True


def _runs(client: DockerClient) -> dict[tuple[str, Path], Any]:
    """Every run with a container on this engine, and the agent's container, or None."""
    labelled_run: dict[str, str | list[str] | bool] = {"label": [RUN]}
    containers: dict[tuple[str, Path], Any] = {}
    with engine_errors("our containers cannot be listed"):
        for container in client.containers.list(all=True, filters=labelled_run, ignore_removed=True):
            containers.setdefault(_run_of(container.labels))
            if container.labels.get(ROLE) == AGENT:
                containers[_run_of(container.labels)] = container
    return containers


def _run_of(labels: dict[str, str]) -> tuple[str, Path]:
    return labels[RUN], Path(labels[WORKDIR])


def _why_orphaned(run_id: str, layout: control.Layout, container: Any | None) -> str | None:
    """Why a run is an orphan; None if an orchestrator could still attach to it. Called with the run's lock held."""
    launch_spec = control.read(layout.task, control.LaunchSpec)
    if launch_spec is None or launch_spec.run_id != run_id:
        return "its work directory has no record of it"
    if container is None:
        return "only its forwarder is left"
    if layout.stop.exists():
        return "a stop was requested"
    if control.read(layout.outcome, control.Outcome):
        return "its files have been harvested"
    if container.status == "created":
        return "it was never started"
    state = container.attrs["State"]
    if not state["Running"]:
        return "it has ended"
    seconds = (datetime.now(UTC) - parse_time(state["StartedAt"])).total_seconds()
    return "its time limit has passed" if seconds >= Limits(**launch_spec.limits).time_limit_seconds else None


def _harvest(container: Any, orphan: Orphan, layout: control.Layout) -> None:
    launch_spec = control.read(layout.task, control.LaunchSpec)
    outcome = control.read(layout.outcome, control.Outcome)
    if launch_spec is None or launch_spec.run_id != orphan.run_id or outcome or orphan.status == "created":
        return
    with contextlib.suppress(BackendError):  # a failed harvest must not keep the run from being removed
        limits = Limits(**launch_spec.limits)
        end = Watch(container, layout, limits, lambda: None).until_end()
        if end.reason is None or end.reason.status != "lost":  # the next start runs it again
            conclude(layout, limits, end)
