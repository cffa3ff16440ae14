"""Leftovers of dead processes, for `mlebench doctor`: they are reported, or with `fix` cleaned up."""

from __future__ import annotations

import os
from collections.abc import Iterator
from datetime import timedelta

from common.units import counted
from flows.diagnosis.health import Finding
from storage.store import Store

_REMEDY = "mlebench doctor --fix"


def check_flow_runs(fix: bool = False, silence: timedelta | None = None) -> Iterator[Finding]:
    """Flow runs without a process. `fix` marks them as crashed, and submits those of a deployment again.

    Args:
        fix: clean up.
        silence: time without a heartbeat after which a flow run counts as dead; by default three intervals.
    """
    if not _server():
        yield Finding("flow runs", "ok", "a temporary Prefect server is started for each run")
        return
    from flows.diagnosis import zombies

    dead = zombies.find(silence)
    done = zombies.resolve(dead) if fix else {}
    for zombie in dead:
        text = f"{zombie.name!r} has no process, last seen {zombie.last_sign:%Y-%m-%d %H:%M:%S} UTC"
        if zombie.id in done:
            yield Finding("flow runs", "ok", f"{text}: marked as crashed{_again(done[zombie.id])}")
        elif fix:
            yield Finding("flow runs", "ok", f"{zombie.name!r} is still running")
        else:
            yield Finding("flow runs", "warn", text, _REMEDY)
    if not dead:
        yield Finding("flow runs", "ok", "all running flow runs have a process")


def check_slots(fix: bool = False) -> Iterator[Finding]:
    """Concurrency slots of deployments that no flow run uses, which block other flow runs. `fix` frees them."""
    if not _server():
        return
    from flows.diagnosis import zombies

    suspected = zombies.leaks()
    # A flow run may end between the requests for slots and for runs, so a leak is confirmed by a second look.
    confirmed = [leak for leak in zombies.leaks() if leak in suspected] if suspected else []
    if fix:
        zombies.free(confirmed)
    for leak in confirmed:
        text = f"{leak.deployment}: {leak.taken} taken, {leak.used} in use"
        yield Finding("slots", "ok", f"{text}: freed") if fix else Finding("slots", "warn", text, _REMEDY)
    if not confirmed:
        yield Finding("slots", "ok", "all taken slots are in use")


def check_host(fix: bool = False) -> Iterator[Finding]:
    """The agent slots of this host, and agents on it that nobody needs any more. `fix` ends these."""
    from common.settings import get_settings
    from tasks.wiring import host

    superseded = host.end_superseded() if fix else host.superseded()
    for orphan in superseded:
        text = f"{orphan} was begun anew elsewhere, and nobody waits for this agent"
        yield Finding("agents", "ok", f"{text}: ended") if fix else Finding("agents", "warn", text, _REMEDY)
    slots, limit = host.host_slots(), get_settings().agents
    taken, waiting = slots.holders(), len(slots.waiting())
    text = f"{len(taken)} of at most {counted(limit, 'agent')} running on {get_settings().host_name}"
    text += f", {counted(waiting, 'run')} waiting" if waiting else ""
    yield Finding("agents", "ok", ": ".join([text, *(["; ".join(map(str, taken))] if taken else [])]))


def check_containers(fix: bool = False) -> Iterator[Finding]:
    """Containers of abandoned runs. `fix` stops them and keeps their files."""
    from sandbox import docker
    from sandbox.errors import BackendError

    try:
        orphans = docker.end_orphans() if fix else docker.orphans()
    except BackendError:
        return  # without an engine there are no containers; `check_docker` reports that
    for orphan in orphans:
        if fix:
            yield Finding("containers", "ok", f"{orphan}; ended")
        else:
            yield Finding("containers", "warn", str(orphan), _REMEDY)
    if not orphans:
        yield Finding("containers", "ok", "no container is left over from a command that died")


def check_scratch(store: Store, fix: bool = False) -> Iterator[Finding]:
    """Folders of runs that are stored, whose orchestrator was killed before it removed them. `fix` removes them."""
    from tasks.wiring.storing import leftover_folders, remove_folder

    folders = list(leftover_folders(store))
    for folder in folders:
        if fix and remove_folder(folder):
            yield Finding("folders", "ok", f"{folder}: its run is stored; removed")
        else:
            yield Finding("folders", "warn", f"{folder}: its run is stored", _REMEDY)
    if not folders:
        yield Finding("folders", "ok", "no working files are left over from stored runs")


def _again(resolution: str) -> str:
    return ", submitted again" if resolution == "resubmitted" else ""


def _server() -> bool:
    return bool(os.environ.get("PREFECT_API_URL"))
