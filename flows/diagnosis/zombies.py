"""Zombies: flow runs that a Prefect server shows as running although their process or machine has died.

A flow run emits a heartbeat event every PREFECT_FLOWS_HEARTBEAT_FREQUENCY seconds. It counts as a zombie after three
missed heartbeats. Resolving a zombie marks it as crashed, which frees its concurrency slot. A flow run of a deployment
is then scheduled again, and continues from what is in the store.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Literal
from uuid import UUID

if TYPE_CHECKING:
    from prefect.client.orchestration import SyncPrefectClient
    from prefect.client.schemas.filters import FlowRunFilter, FlowRunFilterState
    from prefect.client.schemas.objects import FlowRun

BEATS = 3
"""Missed heartbeats in a row; one may be late on a busy machine."""
HEARTBEAT = "prefect.flow-run.heartbeat"
_DEFAULT_BEAT_SECONDS = 180  # seconds between heartbeats by Prefect's default
_MAX_STARTS = 3  # a flow run that crashes its machine must not be restarted forever
_PAGE_ITEMS = 200
_ABORTED_MESSAGE = "Execution was aborted by Python system exit call"

Resolution = Literal["resubmitted", "crashed"]


@dataclass(frozen=True)
class Zombie:
    """A flow run without a process."""

    id: UUID
    name: str
    last_sign: datetime
    """Time of the last heartbeat or change of state."""
    resubmittable: bool
    """Whether a worker can run it again: it came from a deployment, and has not been started too often."""


def find(silence: timedelta | None = None) -> list[Zombie]:
    """The zombies on the server of PREFECT_API_URL, oldest first.

    Args:
        silence: time without a heartbeat after which a flow run counts as dead; by default three of its intervals.
    """
    from prefect.client.orchestration import get_client
    from prefect.client.schemas.filters import FlowRunFilter

    from flows.fleet.resubmission import shared_tag

    zombies = []
    with get_client(sync_client=True) as client:
        for run in _pages(client, FlowRunFilter(state=_active())):
            if not _has_process(run):
                continue
            if (sign := silent_since(client, run, silence)) is not None:
                # A flow run of a fleet is followed by another one instead, because its process may come back.
                resubmittable = (
                    run.deployment_id is not None and run.run_count < _MAX_STARTS and shared_tag(run.tags) is None
                )
                zombies.append(Zombie(run.id, run.name, sign, resubmittable))
    return zombies


def silent_since(client: SyncPrefectClient, run: FlowRun, silence: timedelta | None = None) -> datetime | None:
    """The time of a flow run's last sign, if that is too long ago for a living process; arguments as in `find`."""
    sign, patience = _last_sign(client, run)
    return sign if datetime.now(UTC) - sign > (patience if silence is None else silence) else None


def resolve(zombies: Sequence[Zombie]) -> dict[UUID, Resolution]:
    """Mark zombies and their subflows as crashed, and schedule those of a deployment again; returns what was done.

    Flow runs that have emitted a heartbeat meanwhile, or have ended, are left alone and not returned.
    """
    from prefect.client.orchestration import get_client
    from prefect.states import AwaitingRetry, Crashed

    done: dict[UUID, Resolution] = {}
    with get_client(sync_client=True) as client:
        for zombie in zombies:
            run = client.read_flow_run(zombie.id)
            if run.state is None or run.state.is_final() or _last_sign(client, run)[0] > zombie.last_sign:
                continue
            message = f"Not seen since {zombie.last_sign:%Y-%m-%d %H:%M:%S} UTC: its process or machine died."
            for child in reversed(list(_descendants(client, run))):
                _crash_tasks(client, child, message)
                client.set_flow_run_state(child.id, Crashed(message=message))
            _crash_tasks(client, run, message)
            client.set_flow_run_state(zombie.id, Crashed(message=message))
            done[zombie.id] = "crashed"
            if zombie.resubmittable:
                client.set_flow_run_state(zombie.id, AwaitingRetry(message="Resubmitted: its process had died."))
                done[zombie.id] = "resubmitted"
    return done


def resubmit_aborted() -> dict[UUID, str]:
    """Schedule flow runs of deployments again whose processes ended with their workers; returns their names.

    Prefect has marked them as crashed itself: a flow run that begins when its worker is killed cannot write its log.
    """
    from prefect.client.orchestration import get_client
    from prefect.client.schemas.filters import FlowRunFilter
    from prefect.states import AwaitingRetry

    from flows.fleet.resubmission import shared_tag

    since = datetime.now(UTC) - timedelta(days=1)
    run_filter = FlowRunFilter.model_validate({"state": {"type": {"any_": ["CRASHED"]}}, "end_time": {"after_": since}})
    done = {}
    with get_client(sync_client=True) as client:
        for run in _pages(client, run_filter):
            aborted = run.state is not None and _ABORTED_MESSAGE in (run.state.message or "")
            # A flow run of a fleet is followed by another one instead.
            if (
                not aborted
                or run.deployment_id is None
                or run.run_count >= _MAX_STARTS
                or shared_tag(run.tags) is not None
            ):
                continue
            client.set_flow_run_state(run.id, AwaitingRetry(message="Resubmitted: its worker had died."))
            done[run.id] = run.name
    return done


@dataclass(frozen=True)
class Leak:
    """A deployment with more taken concurrency slots than active flow runs."""

    limit: UUID
    deployment: str
    taken: int
    used: int


def leaks() -> list[Leak]:
    """Deployments with taken slots that no flow run uses, as a killed server leaves them."""
    from prefect.client.orchestration import get_client
    from prefect.client.schemas.filters import DeploymentFilter, DeploymentFilterId, FlowRunFilter

    leaking = []
    with get_client(sync_client=True) as client:
        for deployment in client.read_deployments(limit=_PAGE_ITEMS):
            limit = deployment.global_concurrency_limit
            if limit is None or not limit.active_slots:
                continue
            of_deployment = DeploymentFilter(id=DeploymentFilterId(any_=[deployment.id]))
            used = len(
                client.read_flow_runs(
                    deployment_filter=of_deployment, flow_run_filter=FlowRunFilter(state=_active()), limit=_PAGE_ITEMS
                )
            )
            if limit.active_slots > used:
                leaking.append(Leak(limit.id, deployment.name, limit.active_slots, used))
    return leaking


def free(found: Sequence[Leak]) -> None:
    """Free the slots that no flow run uses."""
    from prefect.client.orchestration import get_client
    from prefect.client.schemas.actions import GlobalConcurrencyLimitUpdate

    with get_client(sync_client=True) as client:
        for leak in found:
            client.update_global_concurrency_limit(
                str(leak.limit), GlobalConcurrencyLimitUpdate(active_slots=leak.used)
            )


def _active() -> FlowRunFilterState:
    from prefect.client.schemas.filters import FlowRunFilterState, FlowRunFilterStateType
    from prefect.client.schemas.objects import StateType

    active = [StateType.RUNNING, StateType.PENDING, StateType.CANCELLING]
    return FlowRunFilterState(type=FlowRunFilterStateType(any_=active))


def _last_sign(client: SyncPrefectClient, run: FlowRun) -> tuple[datetime, timedelta]:
    """The time of the last heartbeat or change of state, and how long the flow run may stay silent after it."""
    from prefect.events.filters import EventFilter, EventNameFilter, EventOrder, EventResourceFilter
    from prefect.settings import get_current_settings

    event_filter = EventFilter(
        event=EventNameFilter(name=[HEARTBEAT]),
        resource=EventResourceFilter(id=[f"prefect.flow-run.{run.id}"]),
        order=EventOrder.DESC,
    )
    times = [event.occurred for event in client.read_events(event_filter, limit=2).events]
    assert run.state is not None
    # The starter of a flow run chooses its heartbeat interval. Before the second heartbeat, assume the setting of this
    # process for flow runs of deployments, because all workers share it.
    setting = get_current_settings().flows.heartbeat_frequency if run.deployment_id else None
    beat = (
        max(times[0] - times[1], timedelta(seconds=10))
        if len(times) > 1
        else timedelta(seconds=setting or _DEFAULT_BEAT_SECONDS)
    )
    return max([*times, run.state.timestamp]), BEATS * beat


def _descendants(client: SyncPrefectClient, run: FlowRun) -> Iterator[FlowRun]:
    """The active subflows of a flow run, recursively."""
    from prefect.client.schemas.filters import FlowRunFilter, FlowRunFilterParentFlowRunId

    subflows = FlowRunFilter(state=_active(), parent_flow_run_id=FlowRunFilterParentFlowRunId(any_=[run.id]))
    for child in _pages(client, subflows):
        if not _has_process(child):
            yield child
            yield from _descendants(client, child)


def _has_process(run: FlowRun) -> bool:
    """Whether a flow run has a process of its own.

    Subflows share the process of their parent and are resolved with it, except those of a deployment, such as attempts.
    """
    return run.parent_task_run_id is None or run.deployment_id is not None


def _pages(client: SyncPrefectClient, run_filter: FlowRunFilter) -> list[FlowRun]:
    """All flow runs of a filter, oldest first."""
    from prefect.client.schemas.sorting import FlowRunSort

    runs: list[FlowRun] = []
    while True:
        page = client.read_flow_runs(
            flow_run_filter=run_filter, sort=FlowRunSort.START_TIME_ASC, limit=_PAGE_ITEMS, offset=len(runs)
        )
        runs += page
        if len(page) < _PAGE_ITEMS:
            return runs


def _crash_tasks(client: SyncPrefectClient, run: FlowRun, message: str) -> None:
    from prefect.client.schemas.filters import FlowRunFilter, FlowRunFilterId, TaskRunFilter
    from prefect.states import Crashed

    unfinished = TaskRunFilter.model_validate({"state": {"type": {"any_": ["RUNNING", "PENDING"]}}})
    of_run = FlowRunFilter(id=FlowRunFilterId(any_=[run.id]))
    for task in client.read_task_runs(flow_run_filter=of_run, task_run_filter=unfinished, limit=_PAGE_ITEMS):
        client.set_task_run_state(task.id, Crashed(message=message), force=True)
