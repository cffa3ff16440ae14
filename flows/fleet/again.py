"""Submitting crashed flow runs of a work pool again, by whoever notices first: orchestrators and workers.

All flow runs of one attempt have the same tag `run:...`; one that hands out, and those that follow it, `watch:...`. The
idempotency key of a flow run ends with its number among these: two who submit the same one get one flow run.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from itertools import takewhile
from typing import TYPE_CHECKING, Any, cast
from uuid import UUID

from prefect import get_client
from prefect.deployments import run_deployment

from flows.fleet.runs import tags_again

if TYPE_CHECKING:
    from prefect.client.schemas.objects import FlowRun

CRASHES = 3
"""A flow run that has crashed so often in a row is not submitted again: it may be what crashes its hosts."""
SETTLED_SECONDS = 45.0
"""A flow run that fell silent has so long to deny its death: the server may have been away, and not the host."""
SILENT = "Fallen silent"
"""Beginning of the message of a flow run that is marked as crashed because its heartbeats have stopped."""
_DAY = timedelta(days=1)
_PAGE = 200
_done: set[UUID] = set()  # crashed flow runs that this process need not look at again


def family(tags: Sequence[str]) -> str | None:
    """The tag that a flow run shares with those that follow it; None if none may follow."""
    return next((tag for tag in tags if tag.startswith(("run:", "watch:"))), None)


def members(tag: str) -> list[FlowRun]:
    """The flow runs with a family's tag, latest first."""
    from prefect.client.schemas.filters import FlowRunFilter, FlowRunFilterTags
    from prefect.client.schemas.sorting import FlowRunSort

    wanted = FlowRunFilter(tags=FlowRunFilterTags(all_=[tag]))
    with get_client(sync_client=True) as client:
        return client.read_flow_runs(flow_run_filter=wanted, sort=FlowRunSort.EXPECTED_START_TIME_DESC, limit=_PAGE)


def settled(run: FlowRun) -> bool:
    """Whether a crashed flow run is known to be dead."""
    assert run.state is not None
    silent = (run.state.message or "").startswith(SILENT)
    return not silent or (datetime.now(UTC) - run.state.timestamp).total_seconds() > SETTLED_SECONDS


def follow(run: FlowRun) -> FlowRun | None:
    """The flow run that follows a crashed one, which is submitted unless it is; None if too many have crashed."""
    tag = family(run.tags)
    assert tag is not None
    runs = members(tag)
    if runs and runs[0].id != run.id:
        return runs[0]
    if len(list(takewhile(lambda each: each.state is not None and each.state.is_crashed(), runs))) >= CRASHES:
        return None
    assert run.deployment_id is not None
    made: Any = run_deployment(
        name=run.deployment_id,
        parameters=run.parameters,
        flow_run_name=run.name,
        tags=tags_again(run),
        idempotency_key=key(tag, len(runs) + 1),
        work_queue_name=run.work_queue_name,
        as_subflow=False,
        timeout=0,
    )
    return cast("FlowRun", made)


def key(tag: str, number: int) -> str:
    """The idempotency key of the `number`-th flow run of a family."""
    return f"{tag.partition(':')[2]}-try-{number}"


def resubmit_crashed(pool: str) -> list[str]:
    """Submit the flow runs of a pool that have crashed within a day, and that none follows; returns their names."""
    from prefect.client.schemas.filters import FlowRunFilter, WorkPoolFilter, WorkPoolFilterName
    from prefect.client.schemas.sorting import FlowRunSort

    wanted = FlowRunFilter.model_validate(
        {"state": {"type": {"any_": ["CRASHED"]}}, "end_time": {"after_": datetime.now(UTC) - _DAY}}
    )
    with get_client(sync_client=True) as client:
        crashed = client.read_flow_runs(
            flow_run_filter=wanted,
            work_pool_filter=WorkPoolFilter(name=WorkPoolFilterName(any_=[pool])),
            sort=FlowRunSort.END_TIME_DESC,
            limit=_PAGE,
        )
    names = []
    for run in crashed:
        if run.id in _done or not settled(run):
            continue
        if family(run.tags) is not None and run.deployment_id is not None:
            follower = follow(run)
            if follower is not None and follower.state is not None and follower.state.is_scheduled():
                names.append(run.name)
        _done.add(run.id)
    return names
