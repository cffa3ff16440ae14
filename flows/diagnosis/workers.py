"""Checks of work pools for `mlebench doctor`: whether a worker takes what is submitted."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from common.units import counted
from flows.diagnosis.health import Finding
from tasks.wiring.prefect_server import served

if TYPE_CHECKING:
    from prefect.client.orchestration import SyncPrefectClient
    from prefect.client.schemas.objects import WorkPool

DEPLOYMENTS = "mlebench"
"""The work pool of the deployments; see `deployments/deploy.py`."""


def check_workers(agent_pool: str | None) -> Iterator[Finding]:
    """Each work pool that has deployments of this project has a worker that polls; so has the pool for agents.

    Args:
        agent_pool: The pool that runs agents (MLEBENCH_AGENT_POOL), which must exist. None: there is none.
    """
    from prefect import get_client

    if not served():
        if agent_pool is not None:
            yield _no_server(agent_pool)
        return
    with get_client(sync_client=True) as client:
        pools = {pool.name: pool for pool in client.read_work_pools(limit=200)}
        pool_names = _deployed(client) & pools.keys()
        if agent_pool is not None and agent_pool not in pools:
            yield Finding("workers", "fail", f"there is no work pool {agent_pool}", _to_start(agent_pool))
        if agent_pool in pools:
            pool_names.add(str(agent_pool))
        if not pool_names:
            yield Finding("workers", "ok", "no work pool is used: flows run in the process of their command")
        for name in sorted(pool_names):
            yield _check(client, pools[name])


def _no_server(pool: str) -> Finding:
    text = f"agents are to run in work pool {pool}, but there is no Prefect server"
    return Finding("workers", "fail", text, "set PREFECT_API_URL, or unset MLEBENCH_AGENT_POOL")


def _deployed(client: SyncPrefectClient) -> set[str]:
    """The work pools of this project's deployments."""
    deployments = client.read_deployments(limit=200)
    return {
        deployment.work_pool_name
        for deployment in deployments
        if deployment.work_pool_name and "mlebench" in deployment.tags
    }


def _check(client: SyncPrefectClient, pool: WorkPool) -> Finding:
    workers = client.read_workers_for_work_pool(pool.name, limit=200)
    online = sorted(worker.name for worker in workers if str(worker.status.value) == "ONLINE")
    if pool.is_paused:
        return Finding("workers", "fail", f"work pool {pool.name} is paused", f"prefect work-pool resume {pool.name}")
    if not online:
        silent = f"; {counted(len(workers), 'worker')} fell silent" if workers else ""
        return Finding("workers", "fail", f"no worker polls work pool {pool.name}{silent}", _to_start(pool.name))
    return Finding("workers", "ok", f"work pool {pool.name}: {', '.join(online)}")


def _to_start(pool: str) -> str:
    """How to start a worker of a pool. Only Prefect's own worker takes the queues of the deployments' pool."""
    if pool == DEPLOYMENTS:
        return f"make up, or prefect worker start --pool {pool} --type process"
    return f"mlebench worker --pool {pool}"
