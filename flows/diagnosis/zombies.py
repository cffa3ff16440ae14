"""Flow runs that a Prefect server takes for running although nothing runs them: their process or machine died.

A flow run gives a sign of life, an event, every PREFECT_FLOWS_HEARTBEAT_FREQUENCY seconds. One that has given none for
three times as long as it used to take is a zombie. Resolving it says so: it is marked as crashed, which frees its
concurrency slot; one of a deployment is then scheduled again, and goes on from what is in the store.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Literal
from uuid import UUID

if TYPE_CHECKING:
    from prefect.client.orchestration import SyncPrefectClient
    from prefect.client.schemas.filters import FlowRunFilterState
    from prefect.client.schemas.objects import FlowRun

BEATS = 3
"""Signs of life missed in a row; one may be late on a busy machine."""
HEARTBEAT = "prefect.flow-run.heartbeat"
_BEAT = 180  # seconds between two signs by Prefect's default
_STARTS = 3  # a flow run that takes its machine down each time must not do so for ever
_PAGE = 200

Resolution = Literal["resubmitted", "crashed"]


@dataclass(frozen=True)
class Zombie:
    """A flow run without a process."""

    id: UUID
    name: str
    last_sign: datetime
    """When it was last known to live."""
    resubmittable: bool
    """Whether it came from a deployment, so that a worker can run it again, and has not been started too often."""


def find(silence: timedelta | None = None) -> list[Zombie]:
    """The zombies on the server of PREFECT_API_URL, oldest first.

    Args:
        silence: how long a flow run may give no sign; by default three times as long as between its last two.
    """
    from prefect.client.orchestration import get_client
    from prefect.client.schemas.filters import FlowRunFilter, FlowRunFilterParentTaskRunId
    from prefect.client.schemas.sorting import FlowRunSort

    found, now = [], datetime.now(UTC)
    with get_client(sync_client=True) as client:
        # What a flow run started shares its process, and its fate.
        top = FlowRunFilter(state=_active(), parent_task_run_id=FlowRunFilterParentTaskRunId(is_null_=True))
        for run in client.read_flow_runs(flow_run_filter=top, sort=FlowRunSort.START_TIME_ASC, limit=_PAGE):
            sign, patience = _last_sign(client, run)
            if now - sign > (patience if silence is None else silence):
                again = run.deployment_id is not None and run.run_count < _STARTS
                found.append(Zombie(run.id, run.name, sign, again))
    return found


def resolve(zombies: Sequence[Zombie]) -> dict[UUID, Resolution]:
    """Mark zombies and what they started as crashed, and have those of a deployment run again; what became of each.

    One that gave a sign of life meanwhile, or has ended, is left alone and is not in the answer.
    """
    from prefect.client.orchestration import get_client
    from prefect.states import AwaitingRetry, Crashed

    done: dict[UUID, Resolution] = {}
    with get_client(sync_client=True) as client:
        for zombie in zombies:
            run = client.read_flow_run(zombie.id)
            if run.state is None or run.state.is_final() or _last_sign(client, run)[0] > zombie.last_sign:
                continue
            message = f"No sign of life since {zombie.last_sign:%Y-%m-%d %H:%M:%S} UTC: its process or machine died."
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


@dataclass(frozen=True)
class Leak:
    """A deployment whose concurrency slots are taken by more flow runs than there are."""

    limit: UUID
    deployment: str
    taken: int
    used: int


def leaks() -> list[Leak]:
    """Deployments with taken slots that no flow run uses: what a server that was killed leaves behind."""
    from prefect.client.orchestration import get_client
    from prefect.client.schemas.filters import DeploymentFilter, DeploymentFilterId, FlowRunFilter

    found = []
    with get_client(sync_client=True) as client:
        for deployment in client.read_deployments(limit=_PAGE):
            limit = deployment.global_concurrency_limit
            if limit is None or not limit.active_slots:
                continue
            own = DeploymentFilter(id=DeploymentFilterId(any_=[deployment.id]))
            used = len(
                client.read_flow_runs(
                    deployment_filter=own, flow_run_filter=FlowRunFilter(state=_active()), limit=_PAGE
                )
            )
            if limit.active_slots > used:
                found.append(Leak(limit.id, deployment.name, limit.active_slots, used))
    return found


def free(found: Sequence[Leak]) -> None:
    """Give back the slots that no flow run uses."""
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
    """The last sign of life, or when it came into its state if that was later; and how long it may be silent."""
    from prefect.events.filters import EventFilter, EventNameFilter, EventOrder, EventResourceFilter
    from prefect.settings import get_current_settings

    wanted = EventFilter(
        event=EventNameFilter(name=[HEARTBEAT]),
        resource=EventResourceFilter(id=[f"prefect.flow-run.{run.id}"]),
        order=EventOrder.DESC,
    )
    signs = [event.occurred for event in client.read_events(wanted, limit=2).events]
    assert run.state is not None
    # Whoever started it chose how often it beats. Of one that has not given two signs yet: as this process does, if it
    # came from a deployment, whose workers all have the same setting.
    own = get_current_settings().flows.heartbeat_frequency if run.deployment_id else None
    beat = max(signs[0] - signs[1], timedelta(seconds=10)) if len(signs) > 1 else timedelta(seconds=own or _BEAT)
    return max([*signs, run.state.timestamp]), BEATS * beat


def _descendants(client: SyncPrefectClient, run: FlowRun) -> Iterator[FlowRun]:
    """The active flow runs that a flow run started, and those that they did."""
    from prefect.client.schemas.filters import FlowRunFilter, FlowRunFilterParentFlowRunId

    own = FlowRunFilter(state=_active(), parent_flow_run_id=FlowRunFilterParentFlowRunId(any_=[run.id]))
    for child in client.read_flow_runs(flow_run_filter=own, limit=_PAGE):
        yield child
        yield from _descendants(client, child)


def _crash_tasks(client: SyncPrefectClient, run: FlowRun, message: str) -> None:
    from prefect.client.schemas.filters import FlowRunFilter, FlowRunFilterId, TaskRunFilter
    from prefect.states import Crashed

    unfinished = TaskRunFilter.model_validate({"state": {"type": {"any_": ["RUNNING", "PENDING"]}}})
    of_run = FlowRunFilter(id=FlowRunFilterId(any_=[run.id]))
    for task in client.read_task_runs(flow_run_filter=of_run, task_run_filter=unfinished, limit=_PAGE):
        client.set_task_run_state(task.id, Crashed(message=message), force=True)
