"""Handing a whole benchmark over to the hosts of a work pool."""

from __future__ import annotations

import uuid
from typing import Any

from prefect.deployments import run_deployment

from flows.fleet import again
from flows.fleet.pool import group_tags
from flows.fleet.queues import FLOWS, deployment_name
from flows.fleet.registration import register


def submit(pool: str, parameters: dict[str, Any]) -> None:
    """Submit a run of the flow full-benchmark, which prepares, hands out and watches on one of the pool's hosts.

    Args:
        pool: The work pool.
        parameters: The parameters of the flow without the pool.
    """
    register(pool)
    request = parameters["request"]
    watch = f"watch:{uuid.uuid4().hex}"  # each submission is a flow run of its own, even of the same group
    run_deployment(
        name=deployment_name(pool, "full-benchmark"),
        parameters={**parameters, "request": request.model_dump(mode="json"), "pool": pool},
        tags=[*group_tags(request), watch],
        idempotency_key=again.key(watch, 1),
        work_queue_name=FLOWS,
        as_subflow=False,
        timeout=0,
    )
