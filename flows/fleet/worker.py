"""The worker of a host: Prefect's process worker for the host's slots, and another one for the flows that hand out."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import anyio
from prefect.workers.process import ProcessWorker

from flows.fleet.setup import FLOWS

WATCHERS = 2
"""Flow runs that hand out and watch attempts on one host at the same time. They wait most of the time."""


@dataclass(frozen=True)
class Host:
    """What a host offers to a work pool."""

    pool: str
    name: str
    slots: int
    labels: Sequence[str]


def serve(host: Host, healthcheck: bool, say: Callable[[str], None]) -> None:
    """Take attempts from the queues of the host's labels until a signal ends this process."""
    from prefect.utilities.processutils import setup_signal_handlers_worker

    setup_signal_handlers_worker(os.getpid(), f"the worker {host.name}", say)
    anyio.run(_serve, host, healthcheck, say)


async def _serve(host: Host, healthcheck: bool, say: Callable[[str], None]) -> None:
    agents = _worker(host.pool, host.name, host.labels, host.slots)
    # A worker of its own: a flow that waits for its attempts must not take the slot that they need.
    flows = _worker(host.pool, f"{host.name}-{FLOWS}", [FLOWS], WATCHERS)
    async with anyio.create_task_group() as both:
        both.start_soon(flows.start, False, False, lambda _text: None)
        await agents.start(with_healthcheck=healthcheck, printer=say)


def _worker(pool: str, name: str, queues: Sequence[str], limit: int) -> ProcessWorker:
    return ProcessWorker(
        name=name, work_pool_name=pool, work_queues=list(queues), limit=limit, create_pool_if_not_found=False
    )
