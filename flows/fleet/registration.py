"""The work pool of a fleet on the Prefect server: registering its queues and deployments, submitting a benchmark."""

from __future__ import annotations

import contextlib
import uuid
from datetime import timedelta
from functools import cache
from typing import Any
from uuid import UUID

from common.errors import UserError
from flows.fleet.queues import FLOWS, LABELS, deployment_name, queue_name, require_server
from flows.fleet.template import ensure_pool

BEAT_SECONDS = 30
"""Interval between two heartbeats of a flow run, Prefect's minimum."""
SAFE = {"PYTHONSAFEPATH": "1"}
"""Environment variables of workers, which their flow runs inherit. Prefect runs hooks as a script in its folder
`prefect/runner`, whose `storage.py` would hide our package in the processes that we start. Prefect's own imports
respect it only in part, see `entrypoint`."""


def entrypoint(flow: Any) -> str:
    """The entry point of a flow for workers: in `mlebench_pipeline`, not in our package `flows`.

    Prefect puts the working directory of a flow run first on `sys.path` whatever `PYTHONSAFEPATH` says: the directory
    where a worker was started, or `working_dir` of the work pool. A user's own `flows/` there would be imported.
    """
    return f"mlebench_pipeline.{flow.fn.__name__}"


@cache  # once a process: each registration is several requests
def register(pool: str) -> tuple[UUID, UUID]:
    """Create the pool and its queues if they are missing, and register the deployments. Idempotent.

    Returns the ids of the deployments of `attempt` and `full-benchmark`.

    Raises `UserError` if no server is configured, or if the pool is of another type.
    """
    require_server()
    from prefect import get_client
    from prefect.exceptions import ObjectAlreadyExists, ObjectNotFound

    from flows.attempt import attempt
    from flows.full_benchmark import full_benchmark

    with get_client(sync_client=True) as client:
        work_pool = ensure_pool(client, pool)
        if work_pool.type != "process":
            raise UserError(
                f"work pool {pool} is of type {work_pool.type}; `mlebench worker` needs one of type process"
            )
        # A new queue comes after all others of the pool, or with the priority 1 before them.
        priorities = {queue_name(label, level): level for level in ("normal", "low", "high") for label in LABELS}
        for queue, priority in {**priorities, FLOWS: "low"}.items():
            try:
                client.read_work_queue_by_name(queue, work_pool_name=pool)
            except ObjectNotFound:
                with contextlib.suppress(ObjectAlreadyExists):
                    queue_priority = 1 if priority == "high" else None
                    client.create_work_queue(name=queue, work_pool_name=pool, priority=queue_priority)
    return _register(attempt, pool, "cpu", "agents"), _register(full_benchmark, pool, FLOWS, "long")


def submit_benchmark(pool: str, parameters: dict[str, Any]) -> None:
    """Submit a run of the flow full-benchmark, which prepares, hands out and watches on one of the pool's hosts.

    Args:
        pool: The work pool.
        parameters: The parameters of the flow without the pool.
    """
    from prefect.deployments import run_deployment

    from flows.fleet import resubmission
    from flows.fleet.pool import group_tags

    register(pool)
    request = parameters["request"]
    watch = f"watch:{uuid.uuid4().hex}"  # each submission is a flow run of its own, even of the same group
    run_deployment(
        name=deployment_name(pool, "full-benchmark"),
        parameters={**parameters, "request": request.model_dump(mode="json"), "pool": pool},
        tags=[*group_tags(request), watch],
        idempotency_key=resubmission.idempotency_key(watch, 1),
        work_queue_name=FLOWS,
        as_subflow=False,
        timeout=0,
    )


def watch_silence(pool: str, seconds: float | None = None) -> None:
    """Make the server mark flow runs of a pool as crashed when their heartbeats stop; see `flows.fleet.resubmission`.

    Only workers register this: it goes by the interval of their flow runs' heartbeats.

    Args:
        pool: The work pool.
        seconds: The silence, 10 or more. Default: three heartbeats.
    """
    from prefect.client.schemas.objects import StateType
    from prefect.events.actions import ChangeFlowRunState
    from prefect.events.schemas.automations import AutomationCore, EventTrigger, Posture, ResourceSpecification
    from prefect.settings import get_current_settings

    from flows.diagnosis.automations import ensure
    from flows.diagnosis.zombies import BEATS, HEARTBEAT
    from flows.fleet.resubmission import SILENT

    beat = get_current_settings().flows.heartbeat_frequency or BEAT_SECONDS
    trigger = EventTrigger(
        match=ResourceSpecification({"prefect.resource.id": "prefect.flow-run.*"}),
        match_related=ResourceSpecification(
            {"prefect.resource.id": [f"prefect.deployment.{deployment_id}" for deployment_id in register(pool)]}
        ),
        for_each={"prefect.resource.id"},
        after={HEARTBEAT, "prefect.flow-run.Pending"},
        expect={"prefect.flow-run.*"},  # the next heartbeat, or the end
        posture=Posture.Proactive,
        threshold=1,
        within=timedelta(seconds=seconds or BEATS * beat),
    )
    message = f"{SILENT}: its process or its host has died, or does not reach the server."
    ensure(
        AutomationCore(
            name=f"mlebench: an attempt in {pool} has fallen silent",
            description="Mark its flow run as crashed. The workers of the pool submit it again.",
            trigger=trigger,
            actions=[ChangeFlowRunState(state=StateType.CRASHED, name="Crashed", message=message, force=False)],
        )
    )


def _register(flow: Any, pool: str, queue: str, tag: str) -> UUID:
    from prefect.deployments.runner import EntrypointType

    deployment = flow.to_deployment(
        name=pool,
        tags=["mlebench", tag],
        entrypoint_type=EntrypointType.MODULE_PATH,
        work_pool_name=pool,
        work_queue_name=queue,
    )
    deployment.entrypoint = entrypoint(flow)
    return deployment.apply()
