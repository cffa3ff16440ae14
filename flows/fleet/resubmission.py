"""Crashed flow runs of a work pool are submitted again, by the orchestrator or the worker that notices first.

All flow runs of one attempt share a tag `run:...`; a flow run that hands attempts out, and those that follow it, share
`watch:...`. The idempotency key of a flow run ends with its number among these, so that two processes which submit the
same one get one flow run.
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

MAX_CRASHES = 3
"""A flow run that has crashed so often in a row is not submitted again: it may be what crashes its hosts."""
SILENT_SECONDS = 45.0
"""A flow run that fell silent may still show within this time that it is alive: the server may have been away, and not
the host."""
SILENT = "Fallen silent"
"""Beginning of the message of a flow run that is marked as crashed because its heartbeats have stopped."""
_MAX_AGE = timedelta(days=1)
"""Flow runs that have crashed longer ago are left."""
_PAGE_RUNS = 200
_handled: set[UUID] = set()  # crashed flow runs that this process need not check again


def shared_tag(tags: Sequence[str]) -> str | None:
    """The tag that a flow run shares with those that follow it; None if none may follow."""
    return next((tag for tag in tags if tag.startswith(("run:", "watch:"))), None)


def runs_tagged(tag: str) -> list[FlowRun]:
    """The flow runs with a shared tag, latest first."""
    from prefect.client.schemas.filters import FlowRunFilter, FlowRunFilterTags
    from prefect.client.schemas.sorting import FlowRunSort

    run_filter = FlowRunFilter(tags=FlowRunFilterTags(all_=[tag]))
    with get_client(sync_client=True) as client:
        return client.read_flow_runs(
            flow_run_filter=run_filter, sort=FlowRunSort.EXPECTED_START_TIME_DESC, limit=_PAGE_RUNS
        )


def is_certainly_dead(run: FlowRun) -> bool:
    """Whether a crashed flow run is dead, and not only silent for a moment."""
    assert run.state is not None
    silent = (run.state.message or "").startswith(SILENT)
    return not silent or (datetime.now(UTC) - run.state.timestamp).total_seconds() > SILENT_SECONDS


def resubmit(run: FlowRun) -> FlowRun | None:
    """Submit a crashed flow run again, unless that is done; returns the one that follows it.

    Returns None if too many in a row have crashed.
    """
    tag = shared_tag(run.tags)
    assert tag is not None
    runs = runs_tagged(tag)
    if runs and runs[0].id != run.id:
        return runs[0]
    if len(list(takewhile(lambda other: other.state is not None and other.state.is_crashed(), runs))) >= MAX_CRASHES:
        return None
    assert run.deployment_id is not None
    follower: Any = run_deployment(
        name=run.deployment_id,
        parameters=run.parameters,
        flow_run_name=run.name,
        tags=tags_again(run),
        idempotency_key=idempotency_key(tag, len(runs) + 1),
        work_queue_name=run.work_queue_name,
        as_subflow=False,
        timeout=0,
    )
    return cast("FlowRun", follower)


def idempotency_key(tag: str, number: int) -> str:
    """The idempotency key of the `number`-th flow run with a shared tag."""
    return f"{tag.partition(':')[2]}-try-{number}"


def resubmit_crashed(pool: str) -> list[str]:
    """Submit the flow runs of a pool that have crashed within a day, and that none follows; returns their names."""
    from prefect.client.schemas.filters import FlowRunFilter, WorkPoolFilter, WorkPoolFilterName
    from prefect.client.schemas.sorting import FlowRunSort

    run_filter = FlowRunFilter.model_validate(
        {"state": {"type": {"any_": ["CRASHED"]}}, "end_time": {"after_": datetime.now(UTC) - _MAX_AGE}}
    )
    with get_client(sync_client=True) as client:
        crashed = client.read_flow_runs(
            flow_run_filter=run_filter,
            work_pool_filter=WorkPoolFilter(name=WorkPoolFilterName(any_=[pool])),
            sort=FlowRunSort.END_TIME_DESC,
            limit=_PAGE_RUNS,
        )
    names = []
    for run in crashed:
        if run.id in _handled or not is_certainly_dead(run):
            continue
        if shared_tag(run.tags) is not None and run.deployment_id is not None:
            follower = resubmit(run)
            if follower is not None and follower.state is not None and follower.state.is_scheduled():
                names.append(run.name)
        _handled.add(run.id)
    return names
