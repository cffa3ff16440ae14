"""The worker of a host: Prefect's process worker for the host's slots, and another one for the flows that hand out."""

from __future__ import annotations

import contextlib
import logging
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any
from uuid import UUID, uuid4

import anyio
import prefect.workers.process
from prefect import get_client
from prefect.runner import Runner
from prefect.workers.process import ProcessWorker

from common import slurm
from flows.fleet import resubmission
from flows.fleet.choice import Candidate, chosen
from flows.fleet.hosts import Advertisement, online
from flows.fleet.notifications import BEAT_SECONDS, HOST_ALIVE, HOST_STOPPED, announce_host
from flows.fleet.queues import FLOWS, PRIORITIES, queue_name, rank_of
from flows.fleet.runs import agent_at
from flows.fleet.stopping import stop_on_signals
from sandbox.host import placement
from sandbox.host.folder import private
from tasks.wiring import job
from tasks.wiring.context import RunContext
from tasks.wiring.host import end_superseded, free_slots, need_of, run_name_of, runs_here, this_host
from tasks.wiring.requests import Attempt

if TYPE_CHECKING:
    from prefect.client.orchestration import SyncPrefectClient
    from prefect.client.schemas.responses import WorkerFlowRunResponse

WATCHERS = 2
"""Flow runs that hand out and watch attempts on one host at the same time. They wait most of the time."""
TEND_SECONDS = 30.0
"""Interval between two searches for agents that nobody needs and for flow runs that have crashed."""
LEAVING_SECONDS = 0.5
"""Interval between two looks whether the job of this process is about to end."""
PAGE = 200
"""Number of flow runs in one answer of the server, at most."""
HOSTS_SECONDS = 15.0
"""Interval between two requests for the other hosts that are online."""
_logger = logging.getLogger("mlebench.worker")


@dataclass(frozen=True)
class Host:
    """A host of a work pool, with the options of its worker."""

    pool: str
    name: str
    slots: int
    labels: Sequence[str]
    backends: frozenset[str] = frozenset({"process", "docker"})


class OwnRunner(Runner):
    """Prefect's runner, with its files in a folder of this user: `/tmp/runner_storage` can be that of only one."""

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self._tmp_dir = private(Path(tempfile.gettempdir())) / "runner_storage" / str(uuid4())


prefect.workers.process.Runner = OwnRunner  # type: ignore[misc]


class FlowsWorker(ProcessWorker):
    """Takes the flow runs that hand out and watch attempts, until the job of this process is about to end."""

    @classmethod
    def __dispatch_key__(cls) -> str:
        return "mlebench-flows"

    def is_busy(self) -> bool:
        """Whether a flow run that it has taken is in progress."""
        return self._limiter is not None and self._limiter.borrowed_tokens > 0

    async def _get_scheduled_flow_runs(self) -> list[WorkerFlowRunResponse]:
        return [] if job.is_leaving() else await super()._get_scheduled_flow_runs()


class HostWorker(FlowsWorker):
    """Takes the attempts that its host can make, and of these first those whose agents it has."""

    @classmethod
    def __dispatch_key__(cls) -> str:
        return "mlebench-host"  # Prefect's own process worker stays the one of work pools of type process

    def __init__(self, host: Host) -> None:
        super().__init__(
            name=host.name,
            work_pool_name=host.pool,
            work_queues=[queue_name(label, priority) for priority in PRIORITIES for label in host.labels],
            limit=host.slots,
            create_pool_if_not_found=False,
        )
        self._host, self._advertisement = host, Advertisement(host.pool)
        self._online: list[str] = []
        self._hosts_read_at = float("-inf")

    async def _get_scheduled_flow_runs(self) -> list[WorkerFlowRunResponse]:
        waiting = await super()._get_scheduled_flow_runs()
        return await anyio.to_thread.run_sync(self._choose, waiting)

    def _choose(self, waiting: list[WorkerFlowRunResponse]) -> list[WorkerFlowRunResponse]:
        me = replace(this_host(frozenset(self._host.labels)), backends=self._host.backends)
        try:
            self._look_at_hosts(me)
        except Exception as error:  # an attempt that waits does not depend on it
            _logger.warning("which hosts of the pool are online is not known: %s", error)
        agents_here, free_count = runs_here(), free_slots()

        def choose(page: list[WorkerFlowRunResponse]) -> list[WorkerFlowRunResponse]:
            by_id = {run.flow_run.id: run for run in page}
            candidates = [_candidate(run.flow_run) for run in page]
            return [by_id[run] for run in chosen(me, free_count, self._online, candidates, agents_here)]

        taken = choose(waiting)
        if taken or len(waiting) < PAGE or not free_count:
            return taken
        # This host may be unfit for all attempts of the first page, for example if they need more GPUs than it has.
        with get_client(sync_client=True) as client:
            pages = further_pages(partial(_waiting, client, self._host.pool), sorted(self._work_queues, key=rank_of))
            return next(filter(None, map(choose, pages)), [])

    def _look_at_hosts(self, me: placement.Host) -> None:
        if time.monotonic() - self._hosts_read_at < HOSTS_SECONDS:
            return
        self._hosts_read_at = time.monotonic()
        with get_client(sync_client=True) as client:
            self._advertisement.show(client, me)
            self._online = [host.name for host in online(client, self._host.pool)]


def further_pages(
    waiting: Callable[[str, datetime | None], list[WorkerFlowRunResponse]], queues: Sequence[str]
) -> Iterator[list[WorkerFlowRunResponse]]:
    """All flow runs that wait in these queues, in pages, queue by queue. The server itself answers with one page.

    Args:
        waiting: up to `PAGE` flow runs that wait in a queue and are due at this time or later, in this order.
        queues: names of work queues, those of high priority first.
    """
    for queue in queues:
        seen: set[UUID] = set()
        due: datetime | None = None
        while True:
            page = waiting(queue, due)
            unseen = [run for run in page if run.flow_run.id not in seen]
            if unseen:
                yield unseen
            if len(page) < PAGE or not unseen:
                break
            seen.update(run.flow_run.id for run in unseen)
            due = page[-1].flow_run.next_scheduled_start_time


def _waiting(
    client: SyncPrefectClient, pool: str, queue: str, due_from: datetime | None
) -> list[WorkerFlowRunResponse]:
    from prefect.client.schemas.responses import WorkerFlowRunResponse

    body: dict[str, Any] = {"work_queue_names": [queue], "scheduled_before": str(datetime.now(UTC)), "limit": PAGE}
    if due_from is not None:
        body["scheduled_after"] = str(due_from)
    answer = client.request("POST", "/work_pools/{name}/get_scheduled_flow_runs", path_params={"name": pool}, json=body)
    return WorkerFlowRunResponse.model_validate_list(answer.json())


def _candidate(run: Any) -> Candidate:
    name, need = "", placement.Need()
    with contextlib.suppress(Exception):  # for example, this host lacks the agent: the attempt itself reports that
        attempt = Attempt.model_validate(run.parameters["attempt"])
        name = run_name_of(attempt)
        need = need_of(RunContext.of(attempt.request))
    since = run.next_scheduled_start_time or run.expected_start_time or datetime.now(UTC)
    waiting = (datetime.now(UTC) - since).total_seconds()
    return Candidate(run.id, name, need, waiting, agent_at(run.tags), rank_of(run.work_queue_name))


def serve(host: Host, healthcheck: bool, say: Callable[[str], None]) -> None:
    """Take attempts from the queues of the host's labels until a signal or the end of the job ends this process."""
    stop_on_signals(host.name, job.leave if slurm.job() else None)
    threading.Thread(target=_tend, args=(host, say), name="tend", daemon=True).start()
    anyio.run(_serve, host, healthcheck, say)


async def _serve(host: Host, healthcheck: bool, say: Callable[[str], None]) -> None:
    # This is a separate worker: a flow that waits for its attempts must not take the slot that they need.
    flows = FlowsWorker(
        name=f"{host.name}-{FLOWS}",
        work_pool_name=host.pool,
        work_queues=[FLOWS],
        limit=WATCHERS,
        create_pool_if_not_found=False,
    )
    attempts = HostWorker(host)
    async with anyio.create_task_group() as both:
        both.start_soon(flows.start, False, False, lambda _text: None)
        both.start_soon(_announce, host.name)
        both.start_soon(partial(attempts.start, with_healthcheck=healthcheck, printer=say))
        await _until_left([attempts, flows], say)
        both.cancel_scope.cancel()


async def _until_left(workers: Sequence[FlowsWorker], say: Callable[[str], None]) -> None:
    """Wait until the job of this process is about to end, and its flow runs have ended or were given back."""
    while not job.is_leaving():
        await anyio.sleep(LEAVING_SECONDS)
    say(f"Worker {workers[0].name!r} leaves: its job ends. It gives back what has not ended.")
    while any(worker.is_busy() for worker in workers):
        await anyio.sleep(LEAVING_SECONDS)


async def _announce(host: str) -> None:
    """Announce at regular intervals that the host takes attempts, and at the end that it was stopped."""
    last = None
    try:
        while True:
            last = announce_host(host, HOST_ALIVE)
            await anyio.sleep(BEAT_SECONDS)
    finally:
        announce_host(host, HOST_STOPPED, last)


def _tend(host: Host, say: Callable[[str], None]) -> None:
    """At regular intervals, end agents that nobody needs any more, and submit crashed flow runs again."""
    while True:
        try:
            for orphan in end_superseded():
                say(f"Ended {orphan}: it was begun anew elsewhere.")
            for name in resubmission.resubmit_crashed(host.pool):
                say(f"Submitted {name} again.")
        except Exception as error:  # the store or the server may be away
            _logger.warning("this host could not be tended: %s", error)
        time.sleep(TEND_SECONDS)
