"""The deployments: which flows run unattended, their schedules, parameters and concurrency limits.

    python -m deployments.deploy [--pool NAME] [--paused]

registers them with the Prefect server of PREFECT_API_URL, together with the automation that starts `recovery`.
Registering is idempotent: it updates what has changed.
"""

from __future__ import annotations

import argparse
import sys
from datetime import timedelta
from typing import TYPE_CHECKING, Any
from uuid import UUID

from common.errors import UserError
from common.settings import get_settings
from flows import which_server

if TYPE_CHECKING:
    from prefect.deployments.runner import RunnerDeployment
    from prefect.events.schemas.automations import AutomationCore

POOL = "mlebench"
NIGHTLY = "0 2 * * *"  # UTC; finished before the working day
QUEUES = {
    # Leases in the store make concurrent preparations safe. More than two are not faster, because they share a network.
    "prepare": 2,
    "grade": 2,
    # Benchmarks have no limit here: the slots of their host or of the work pool limit their agents. `recover` has none
    # because a run that died would keep its slot, and the next run, which has to resolve it, could not start.
}
"""The number of flow runs of a deployment that run at a time. Each of these has a work queue of its name.

They are not concurrency limits of deployments: there, a flow run has to renew a lease every few minutes, and would be
ended after an outage of the server.
"""
WATCH = "mlebench: a flow run has fallen silent"
CRASH = "mlebench: a flow run has crashed"


def deployments() -> list[RunnerDeployment]:
    """All deployments.

    They have no retries of their own: tasks retry transient errors, and other errors would occur again.
    """
    from flows.nightly import nightly
    from flows.recovery import recovery
    from flows.unattended import benchmark, grading, preparation

    return [
        _deployment(benchmark, "full-benchmark", ["agents", "long"]),
        _deployment(nightly, "nightly-lite", ["nightly"], cron=NIGHTLY, parameters={"split": "low", "agent": "dummy"}),
        _deployment(preparation, "prepare", ["data"]),
        _deployment(grading, "grade", ["grading"]),
        _deployment(recovery, "recover", ["maintenance"]),
    ]


def _deployment(flow: Any, name: str, tags: list[str], **options: Any) -> RunnerDeployment:
    from prefect.deployments.runner import EntrypointType

    from flows.fleet.registration import entrypoint

    deployment: RunnerDeployment = flow.to_deployment(
        name,
        tags=["mlebench", *tags],
        work_queue_name=name if name in QUEUES else None,
        # The worker imports the flow from the installed package; no source is copied.
        entrypoint_type=EntrypointType.MODULE_PATH,
        **options,
    )
    deployment.entrypoint = entrypoint(flow)
    return deployment


def deploy(pool: str = POOL, paused: bool = False) -> list[str]:
    """Create the work pool if it is missing, and register all deployments; returns their full names."""
    from prefect import get_client
    from prefect.exceptions import ObjectAlreadyExists

    from flows.diagnosis.automations import ensure
    from flows.fleet.template import ensure_pool

    with get_client(sync_client=True) as client:
        ensure_pool(client, pool)
        for name, limit in QUEUES.items():
            try:
                client.create_work_queue(name, concurrency_limit=limit, work_pool_name=pool)
            except ObjectAlreadyExists:
                queue = client.read_work_queue_by_name(name, work_pool_name=pool)
                client.update_work_queue(queue.id, concurrency_limit=limit)
    deployment_ids: dict[str, Any] = {}
    for deployment in deployments():
        deployment.work_pool_name = pool
        deployment.paused = paused
        deployment_ids[f"{deployment.flow_name}/{deployment.name}"] = deployment.apply()
    ensure(automation(deployment_ids["recovery/recover"]))
    ensure(automation_of_crashes(deployment_ids["recovery/recover"]))
    return list(deployment_ids)


def automation(recover: UUID) -> AutomationCore:
    """An automation that starts the deployment `recover` when the heartbeats of a deployment's flow run stop."""
    from prefect.events.actions import RunDeployment
    from prefect.events.schemas.automations import AutomationCore, EventTrigger, Posture, ResourceSpecification
    from prefect.settings import get_current_settings

    from flows.diagnosis.zombies import BEATS, HEARTBEAT

    beat = get_current_settings().flows.heartbeat_frequency or 180
    trigger = EventTrigger(
        match=ResourceSpecification({"prefect.resource.id": "prefect.flow-run.*"}),
        # Flow runs without a deployment cannot be submitted again; `mlebench doctor --fix` resolves them.
        match_related=ResourceSpecification({"prefect.resource.role": "deployment"}),
        for_each={"prefect.resource.id"},
        after={HEARTBEAT, "prefect.flow-run.Pending"},
        expect={"prefect.flow-run.*"},  # the next heartbeat, or the end
        posture=Posture.Proactive,
        threshold=1,
        within=timedelta(seconds=BEATS * beat),
    )
    return AutomationCore(
        name=WATCH,
        description="Its process or machine has died: mark it as crashed, free its slots, and submit it again.",
        trigger=trigger,
        actions=[RunDeployment(source="selected", deployment_id=recover, parameters=None, job_variables=None)],
    )


def automation_of_crashes(recover: UUID) -> AutomationCore:
    """An automation that starts the deployment `recover` when a deployment's flow run ends with its worker.

    Prefect itself marks such a flow run as crashed, so that the automation for silent flow runs does not start.
    """
    from prefect.events.actions import RunDeployment
    from prefect.events.schemas.automations import AutomationCore, EventTrigger, Posture, ResourceSpecification

    trigger = EventTrigger(
        match=ResourceSpecification({"prefect.resource.id": "prefect.flow-run.*"}),
        match_related=ResourceSpecification({"prefect.resource.role": "deployment"}),
        expect={"prefect.flow-run.Crashed"},
        posture=Posture.Reactive,
        threshold=1,
    )
    return AutomationCore(
        name=CRASH,
        description="Submit it again if it ended because its worker had died.",
        trigger=trigger,
        actions=[RunDeployment(source="selected", deployment_id=recover, parameters=None, job_variables=None)],
    )


def main(arguments: list[str] | None = None) -> int:
    """Run the command; returns the exit code."""
    parser = argparse.ArgumentParser(description="Register the deployments with the Prefect server.")
    parser.add_argument("--pool", default=POOL, help=f"work pool (default: {POOL})")
    parser.add_argument("--paused", action="store_true", help="schedules do not start runs")
    options = parser.parse_args(arguments)
    try:
        get_settings()
        which_server.choose()
        from flows.fleet.queues import require_server

        require_server("registering deployments needs")
    except UserError as error:
        print(f"deploy: {error}", file=sys.stderr)  # noqa: T201
        return 2
    for name in deploy(options.pool, options.paused):
        print(name)  # noqa: T201
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
