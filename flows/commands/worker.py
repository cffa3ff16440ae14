"""mlebench worker."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

import click

from common.errors import UserError
from common.guard import HOST
from flows.commands.doctor import show_findings
from flows.commands.types import whole

if TYPE_CHECKING:
    from common.settings import Settings
    from flows.diagnosis.health import Finding
    from storage.store import Store

# A worker of Prefect ends when its server has been away for about 45 times this: a quarter of an hour.
_QUERY_SECONDS = "20"


@click.command("worker")
@click.option(
    "--pool", metavar="NAME", help="Work pool to take attempts from. Default: MLEBENCH_AGENT_POOL, or agents."
)
@click.option("--slots", type=whole(1), help="Agents at the same time. Default: MLEBENCH_AGENTS.")
@click.option(
    "--label",
    "labels",
    multiple=True,
    type=click.Choice(["cpu", "gpu", "big"]),
    help="What this host takes: agents without GPUs, with GPUs, with more than 64 GiB of memory; repeatable. Default: "
    "what it has.",
)
@click.option("--name", metavar="HOST", help="Name of this host. Default: MLEBENCH_HOST_NAME, or the machine's name.")
@click.option("--docker", is_flag=True, help="Agents will run in containers: a Docker engine must answer.")
@click.option("--check", "only_check", is_flag=True, help="Check this host and exit.")
@click.option("--with-healthcheck", "healthcheck", is_flag=True, help="Serve Prefect's health check on port 8080.")
def command(
    pool: str | None,
    slots: int | None,
    labels: tuple[str, ...],
    name: str | None,
    docker: bool,
    only_check: bool,
    healthcheck: bool,
) -> int:
    """Run agents on this host: take attempts from a work pool until this command is ended.

    The host needs PREFECT_API_URL, MLEBENCH_STORE with its credentials, and Docker for agents that are not trusted.
    It is checked first. If this command ends, agents in progress go on, and the next worker on this host finds them.
    """
    # The processes of flow runs inherit these.
    for variable, value in (("MLEBENCH_AGENTS", slots), ("MLEBENCH_HOST_NAME", name)):
        if value is not None:
            os.environ[variable] = str(value)
    from flows.fleet.queues import require_server
    from flows.fleet.registration import BEAT_SECONDS, SAFE, watch_silence

    os.environ |= SAFE
    # The health check answers everybody who reaches it, so it listens on this machine only.
    os.environ.setdefault("PREFECT_WORKER_WEBSERVER_HOST", HOST)
    os.environ.setdefault("PREFECT_FLOWS_HEARTBEAT_FREQUENCY", str(BEAT_SECONDS))
    os.environ.setdefault("PREFECT_WORKER_QUERY_SECONDS", _QUERY_SECONDS)
    from common.settings import get_settings
    from flows.diagnosis import health
    from tasks.wiring.context import open_store

    get_settings.cache_clear()
    settings = get_settings()
    pool_name = pool or settings.agent_pool or "agents"
    require_server()
    findings = _check_host(settings, open_store(), docker)
    show_findings(findings)
    if any(finding.verdict == "fail" for finding in findings):
        raise UserError(f"host {settings.host_name} is not ready: see the failed checks above")
    host_labels = list(labels) or health.labels()
    click.echo(
        f"Host {settings.host_name}: {settings.agents} slots, {', '.join(host_labels)}; work pool {pool_name}, "
        f"store {settings.store}"
    )
    if only_check:
        return 0
    watch_silence(pool_name)
    from flows.fleet.worker import Host, serve
    from sandbox import backends

    try:
        serve(
            Host(pool_name, settings.host_name, settings.agents, host_labels, backends.usable()),
            healthcheck,
            click.echo,
        )
    except KeyboardInterrupt:
        click.echo(f"Worker {settings.host_name} stopped. Agents in progress go on; `mlebench cancel GROUP` ends them.")
    return 0


def _check_host(settings: Settings, store: Store, docker: bool) -> list[Finding]:
    """Check what a host of a fleet needs: server, store, space, memory, versions, and with `docker` an engine."""
    from flows.diagnosis import health, server

    checks: list[tuple[str, Callable[[], Finding | Iterable[Finding]]]] = [
        ("versions", health.check_versions),
        ("prefect", server.check_prefect),
        ("store", lambda: health.check_store(store)),
        ("scratch", lambda: health.check_scratch(settings, store, ())),
        ("memory", lambda: health.check_memory(settings.agents)),
        ("docker", lambda: health.check_docker(docker)),
    ]
    return [finding for about, check in checks for finding in health.guarded(about, check)]
