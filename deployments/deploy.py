"""The deployments: which flows run unattended, when, with which parameters and limits. The one place that says so.

    python -m deployments.deploy [--pool NAME] [--paused]

registers them with the Prefect server of PREFECT_API_URL. Doing it again changes what has changed and adds nothing.
"""

from __future__ import annotations

import argparse
import contextlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from prefect.deployments.runner import RunnerDeployment

POOL = "mlebench"
NIGHTLY = "0 2 * * *"  # UTC; done before people come to work


def deployments() -> list[RunnerDeployment]:
    """All deployments, in the order in which a newcomer would meet them.

    None retries as a whole: their tasks retry what can pass, and what remains failed would fail again.
    """
    from prefect.client.schemas.objects import ConcurrencyLimitConfig, ConcurrencyLimitStrategy

    from flows.nightly import nightly
    from flows.unattended import benchmark, grading, preparation

    # One process limits its own agents and downloads (MLEBENCH_AGENTS, MLEBENCH_DOWNLOADS); two flow runs at one time
    # would double both. So the long ones queue.
    queue = ConcurrencyLimitConfig(limit=1, collision_strategy=ConcurrencyLimitStrategy.ENQUEUE)
    # A night that still runs when the next begins is a finding; a second one beside it would only be slower.
    skip = ConcurrencyLimitConfig(limit=1, collision_strategy=ConcurrencyLimitStrategy.CANCEL_NEW)
    # Kept apart by leases in the store, so two preparations are safe; more would share one network for nothing.
    pair = ConcurrencyLimitConfig(limit=2, collision_strategy=ConcurrencyLimitStrategy.ENQUEUE)
    return [
        _deployment(benchmark, "full-benchmark", ["agents", "long"], queue),
        _deployment(
            nightly, "nightly-lite", ["nightly"], skip, cron=NIGHTLY, parameters={"split": "low", "agent": "dummy"}
        ),
        _deployment(preparation, "prepare", ["data"], pair),
        _deployment(grading, "grade", ["grading"], pair),
    ]


def _deployment(flow: Any, name: str, tags: list[str], limit: Any, **more: Any) -> RunnerDeployment:
    from prefect.deployments.runner import EntrypointType

    found: RunnerDeployment = flow.to_deployment(
        name,
        tags=["mlebench", *tags],
        concurrency_limit=limit,
        # The worker has the package installed: it imports the flow, no source is copied.
        entrypoint_type=EntrypointType.MODULE_PATH,
        **more,
    )
    return found


def deploy(pool: str = POOL, paused: bool = False) -> list[str]:
    """Make the work pool if need be, and register all deployments in it; returns their full names."""
    from prefect import get_client
    from prefect.client.schemas.actions import WorkPoolCreate
    from prefect.exceptions import ObjectAlreadyExists

    with get_client(sync_client=True) as client, contextlib.suppress(ObjectAlreadyExists):
        client.create_work_pool(WorkPoolCreate(name=pool, type="process"))
    names = []
    for each in deployments():
        each.work_pool_name = pool
        each.paused = paused
        each.apply()
        names.append(f"{each.flow_name}/{each.name}")
    return names


def main(arguments: list[str] | None = None) -> int:
    """Register the deployments."""
    parser = argparse.ArgumentParser(description="Register the deployments with the Prefect server.")
    parser.add_argument("--pool", default=POOL, help=f"work pool (default: {POOL})")
    parser.add_argument("--paused", action="store_true", help="schedules do not start runs")
    options = parser.parse_args(arguments)
    for name in deploy(options.pool, options.paused):
        print(name)  # noqa: T201
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
