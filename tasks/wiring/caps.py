"""The operator's caps on what runs may use, from the settings and the machine. They hold whatever an agent asks for."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

from common.settings import Settings
from sandbox.definitions import Agent
from sandbox.limits import GIB, Limits
from tasks.wiring.requests import RunRequest

_SHARE = 0.9
"""Share of the memory and of the free disk space of this machine that a run may use if the settings do not say."""


def limits_of(agent: Agent, request: RunRequest, settings: Settings) -> Limits:
    """The limits of a run on this machine: those of its agent or the caps of the operator, whichever are smaller.

    A time limit of the request is the operator's own, so it may be longer than the cap.
    """
    wanted = agent.limits.override(time_limit_seconds=request.time_limit_seconds)
    cap = caps(settings).override(time_limit_seconds=request.time_limit_seconds)
    return wanted.capped(cap).capped(caps_of(request, cap))


def stated_limits(agent: Agent, request: RunRequest, settings: Settings) -> Limits:
    """The limits of an agent under the caps that the operator states; hosts are chosen by their memory, cores and GPUs.

    What a cap is by default depends on the machine: a run should not go to a small host because it may have less there.
    """
    stated = agent.limits.override(
        memory_bytes=settings.agent_memory, cpus=settings.agent_cpus, gpus=settings.agent_gpus
    )
    return agent.limits.capped(stated).capped(caps_of(request, stated))


def caps_of(request: RunRequest, others: Limits) -> Limits:
    """The caps that the request states itself, with the rest from `others`."""
    return others.override(memory_bytes=request.most_memory, cpus=request.most_cpus, disk_bytes=request.most_disk)


def caps(settings: Settings) -> Limits:
    """The most that a run may have on this machine."""
    import psutil

    return Limits(
        time_limit_seconds=settings.agent_time_limit,
        grace_seconds=60.0,
        memory_bytes=settings.agent_memory or int(psutil.virtual_memory().total * _SHARE),
        cpus=settings.agent_cpus or os.cpu_count(),
        disk_bytes=settings.agent_disk or max(int(_free(settings.scratch) * _SHARE), 1),
        processes=settings.agent_processes,
        gpus=settings.agent_gpus,
        snapshots=1000,
        snapshot_bytes=10 * GIB,
        log_bytes=GIB,
        submission_bytes=20 * GIB,
        collected_bytes=20 * GIB,
        collected_files=100_000,
        free_bytes=settings.free_disk,
    )


def _free(folder: Path) -> int:
    while not folder.exists():
        folder = folder.parent
    return shutil.disk_usage(folder).free
