"""The host: its slots and GPUs, its description for the placement of runs, and agents that run elsewhere by now.

Slots of the host are for agents. Each process also limits its own downloads, preparations and copies of data.
"""

from __future__ import annotations

import contextlib
import os
import threading
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Literal

from common import slurm
from common.settings import get_settings
from sandbox import backends
from sandbox.backend import Allocation, Backend, RunSpec
from sandbox.host.folder import host_folder
from sandbox.host.placement import Host, Need
from sandbox.host.slots import Claim, Holder, HostSlots
from storage.dataset import Dataset
from storage.datasets.local_copy import local_copy
from storage.runs.folders import RunFolder
from storage.runs.tries import Tries
from storage.store import Store
from storage.uses import Continuing
from tasks.wiring import job
from tasks.wiring.context import RunContext, local_cache, machine_memory
from tasks.wiring.requests import Attempt

Kind = Literal["downloads", "preparations", "copies", "agents"]

TRY_LABEL = "try"
"""Label of a run with the id of its try."""
# Seconds between the end of an agent's time and the latest end of its container.
_SLACK_SECONDS = 3600.0


def host_slots() -> HostSlots:
    """The slots of the host that the settings name."""
    return _slots(host_folder(get_settings().host_name))


@cache  # one object lists the GPUs once
def _slots(folder: Path) -> HostSlots:
    return HostSlots(folder, backends)


@contextlib.contextmanager
def allocated(
    runner: Backend, spec: RunSpec, on_wait: Callable[[str], None], *, running: bool = False
) -> Iterator[Allocation]:
    """Hold a slot of this host and GPUs for a run, unless it has ended already.

    Runs get them in the order in which they ask. One that is in progress, or with `running`, does not wait.

    Raises:
        BackendError: this host has fewer GPUs than the run asks for.
    """
    state = "running" if running else runner.find(spec)
    if state == "finished":
        yield Allocation()
        return
    claim = Claim(
        run_id=spec.run_id,
        workdir=str(spec.workdir.absolute()),
        backend=runner.name,
        gpus=spec.limits.gpus or 0,
        seconds=spec.limits.time_limit_seconds + spec.limits.grace_seconds + _SLACK_SECONDS,
        labels=dict(spec.labels),
    )
    with host_slots().take(claim, get_settings().agents, on_wait, running=state == "running") as allocation:
        yield allocation


def this_host(labels: frozenset[str] = frozenset()) -> Host:
    """The description of this host, by which runs are placed."""
    settings, slots = get_settings(), host_slots()
    return Host(
        name=settings.host_name,
        slots=settings.agents,
        gpus=len(slots.devices),
        cpus=slurm.cpus() or os.cpu_count() or 1,
        memory_bytes=machine_memory(),
        labels=labels,
        leaves_at=job.leaves_at(),
    )


def free_slots() -> int:
    """The number of slots of this host that no run has or waits for."""
    slots = host_slots()
    return get_settings().agents - len(slots.holders()) - len(slots.waiting())


def need_of(context: RunContext) -> Need:
    """The requirements of a group's run on its host, under the operator's caps."""
    request, limits = context.request, context.stated_limits
    return Need(
        backend=request.isolation.backend,
        gpus=limits.gpus or 0,
        cpus=limits.cpus,
        memory_bytes=limits.memory_bytes,
        seconds=context.least_seconds,
    )


def run_name_of(attempt: Attempt) -> str:
    """The name of an attempt's run among those of all stores and groups, as `runs_here` gives it."""
    request = attempt.request
    return f"{request.store} {request.run_group} {attempt.competition_id} {attempt.seed}"


def runs_here() -> frozenset[str]:
    """Names of the runs whose agents are on this host."""
    labels = [holder.claim.labels for holder in host_slots().holders()]
    labels_of_runs = [label for label in labels if {"store", "group", "competition", "seed"} <= label.keys()]
    return frozenset(f"{run['store']} {run['group']} {run['competition']} {run['seed']}" for run in labels_of_runs)


def superseded() -> list[Holder]:
    """Runs on this host without an orchestrator that have been started again since, here or on another host.

    No process waits for such an agent. A host that was cut off for too long has them when it is back.
    """
    return [
        holder for holder in host_slots().holders() if not holder.waited_for and _is_superseded(holder.claim.labels)
    ]


def end_superseded() -> list[Holder]:
    """End the agents of `superseded`, and remove their files; returns them."""
    ended = superseded()
    for holder in ended:
        backends.load(holder.claim.backend).remove(Path(holder.claim.workdir))
    return ended


def _is_superseded(labels: dict[str, str]) -> bool:
    """Whether the store knows of a later try than the one with these labels. An unknown try is not superseded."""
    if not {"store", "group", "competition", "seed", TRY_LABEL} <= labels.keys():
        return False
    store = Store(labels["store"])
    folder = RunFolder(store, labels["group"], labels["competition"], int(labels["seed"]))
    return Tries(store, folder.url).superseded(labels[TRY_LABEL], finished=folder.finished())


# The semaphores are cached and so global, because the limits are per process: all its flow runs and threads share them.
# Without the lock, threads that make the first call at the same time would get different semaphores.
_lock = threading.Lock()


@cache
def _semaphore(_kind: Kind, limit: int) -> threading.BoundedSemaphore:
    return threading.BoundedSemaphore(limit)


@contextlib.contextmanager
def slot(kind: Kind, limit: int) -> Iterator[None]:
    """Wait for one of the `limit` slots of this kind and hold it for the `with` block."""
    with _lock:
        semaphore = _semaphore(kind, limit)
    with semaphore:
        yield


@contextlib.contextmanager
def slot_with_data(
    store: Store, dataset: Dataset, continuing: Continuing | None, on_wait: Callable[[str], None]
) -> Iterator[Path]:
    """Hold a slot for an agent, and a local copy of the dataset. Yields the directory that contains the public files.

    The copy is fetched before the slot is taken, so no slot is idle during a fetch, and the next runs have their data
    when a slot becomes free. At most as many runs fetch or wait with their data as run at a time.

    Args:
        store: store of the dataset.
        dataset: the dataset.
        continuing: a run that uses the copy even if this process is killed.
        on_wait: called with the reason for which the copy waits.
    """
    agents, cache = get_settings().agents, local_cache()
    with contextlib.ExitStack() as resources:
        with slot("copies", agents), contextlib.ExitStack() as prefetch:
            prefetch.enter_context(local_copy(store, dataset, "public", cache, on_wait=on_wait, within_limit=True))
            resources.enter_context(slot("agents", agents))
            prepared = resources.enter_context(local_copy(store, dataset, "public", cache, continuing, on_wait))
        yield prepared
