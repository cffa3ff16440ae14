"""Flow runs that a Prefect server takes for running although nothing runs them: their process or machine died.

A flow run gives signs of life, events named `prefect.flow-run.heartbeat`, every PREFECT_FLOWS_HEARTBEAT_FREQUENCY
seconds (180 by default). One that is active and has given none for three times as long is a zombie. Resolving it says
so: it is marked as crashed, which frees its concurrency slots; if it came from a deployment it is then scheduled
again, and goes on from what is in the store. An agent that outlived its orchestrator is found again.
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

_BEATS = 3  # missed in a row; one may be late on a busy machine
_HEARTBEAT = "prefect.flow-run.heartbeat"
_PAGE = 200


@dataclass(frozen=True)
class Zombie:
    """A flow run without a process."""

    id: UUID
    name: str
    last_sign: datetime
    """When it was last known to live."""
    resubmittable: bool
    """Whether it came from a deployment, so that a worker can run it again."""


def patience() -> timedelta:
    """How long a flow run may be silent."""
    from prefect.settings import get_current_settings

    return timedelta(seconds=_BEATS * (get_current_settings().flows.heartbeat_frequency or 180))


def find(now: datetime | None = None, silence: timedelta | None = None) -> list[Zombie]:
    """The zombies on the server of PREFECT_API_URL, oldest first; `silence` is by default `patience()`."""
    from prefect.client.orchestration import get_client
    from prefect.client.schemas.filters import FlowRunFilter, FlowRunFilterParentTaskRunId
    from prefect.client.schemas.sorting import FlowRunSort

    before = (now or datetime.now(UTC)) - (silence or patience())
    found = []
    with get_client(sync_client=True) as client:
        top = FlowRunFilter(state=_active(), parent_task_run_id=FlowRunFilterParentTaskRunId(is_null_=True))
        for run in client.read_flow_runs(flow_run_filter=top, sort=FlowRunSort.START_TIME_ASC, limit=_PAGE):
            sign = _last_sign(client, run)
            if sign < before:
                found.append(Zombie(run.id, run.name, sign, run.deployment_id is not None))
    return found


def resolve(zombies: Sequence[Zombie]) -> dict[UUID, Literal["resubmitted", "crashed"]]:
    """Mark zombies and what they started as crashed, and have those of a deployment run again; what became of each.

    One that gave a sign of life meanwhile, or has ended, is left alone and is not in the answer.
    """
    from prefect.client.orchestration import get_client
    from prefect.states import AwaitingRetry, Crashed

    done: dict[UUID, Literal["resubmitted", "crashed"]] = {}
    with get_client(sync_client=True) as client:
        for zombie in zombies:
            run = client.read_flow_run(zombie.id)
            if run.state is None or run.state.is_final() or _last_sign(client, run) > zombie.last_sign:
                continue
            message = f"No sign of life since {zombie.last_sign:%Y-%m-%d %H:%M:%S} UTC: its process or machine died."
            for child in reversed(list(_descendants(client, run))):
                client.set_flow_run_state(child.id, Crashed(message=message))
            _crash_tasks(client, run, message)
            client.set_flow_run_state(zombie.id, Crashed(message=message))
            done[zombie.id] = "crashed"
            if zombie.resubmittable:
                client.set_flow_run_state(zombie.id, AwaitingRetry(message="Resubmitted: its process had died."))
                done[zombie.id] = "resubmitted"
    return done


def _active() -> FlowRunFilterState:
    from prefect.client.schemas.filters import FlowRunFilterState, FlowRunFilterStateType
    from prefect.client.schemas.objects import StateType

    active = [StateType.RUNNING, StateType.PENDING, StateType.CANCELLING]
    return FlowRunFilterState(type=FlowRunFilterStateType(any_=active))


def _last_sign(client: SyncPrefectClient, run: FlowRun) -> datetime:
    """The last heartbeat, or when it came into its state if that was later."""
    resource = {"prefect.resource.id": [f"prefect.flow-run.{run.id}"]}
    wanted = {"event": {"name": [_HEARTBEAT]}, "resource": {"labels": resource}, "order": "DESC"}
    answer = client._client.post("/events/filter", json={"filter": wanted, "limit": 1})
    answer.raise_for_status()
    signs = [datetime.fromisoformat(event["occurred"]) for event in answer.json()["events"]]
    assert run.state is not None
    return max([*signs, run.state.timestamp])


def _descendants(client: SyncPrefectClient, run: FlowRun) -> Iterator[FlowRun]:
    """The active flow runs that a flow run started, and those that they did."""
    from prefect.client.schemas.filters import FlowRunFilter, FlowRunFilterParentFlowRunId

    own = FlowRunFilter(state=_active(), parent_flow_run_id=FlowRunFilterParentFlowRunId(any_=[run.id]))
    for child in client.read_flow_runs(flow_run_filter=own, limit=_PAGE):
        yield child
        _crash_tasks(client, child, "Its flow run's process died.")
        yield from _descendants(client, child)


def _crash_tasks(client: SyncPrefectClient, run: FlowRun, message: str) -> None:
    from prefect.client.schemas.filters import FlowRunFilter, FlowRunFilterId, TaskRunFilter
    from prefect.states import Crashed

    unfinished = TaskRunFilter.model_validate({"state": {"type": {"any_": ["RUNNING", "PENDING"]}}})
    of_run = FlowRunFilter(id=FlowRunFilterId(any_=[run.id]))
    for task in client.read_task_runs(flow_run_filter=of_run, task_run_filter=unfinished, limit=_PAGE):
        client.set_task_run_state(task.id, Crashed(message=message), force=True)
