"""mlebench worker."""

from __future__ import annotations

import os
import socket
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Annotated

import click

from common.errors import UserError
from common.guard import HOST
from flows.commands.doctor import show_findings
from flows.commands.options import option, takes
from flows.commands.quantities import POSITIVE_DURATION
from flows.commands.types import whole

if TYPE_CHECKING:
    from common.settings import Settings
    from flows.diagnosis.health import Finding
    from storage.store import Store

# A worker of Prefect ends when its server has been away for about 45 times this: a quarter of an hour.
_QUERY_SECONDS = "20"


@dataclass(frozen=True)
class HostOptions:
    """What the host is, and what it takes."""

    pool: Annotated[
        str | None,
        option(
            "--pool", metavar="NAME", help="Work pool to take attempts from. Default: MLEBENCH_AGENT_POOL, or agents."
        ),
    ] = None
    slots: Annotated[
        int | None, option("--slots", type=whole(1), help="Agents at the same time. Default: MLEBENCH_AGENTS.")
    ] = None
    labels: Annotated[
        tuple[str, ...],
        option(
            "--label",
            multiple=True,
            type=click.Choice(["cpu", "gpu", "big"]),
            help="What this host takes: agents without GPUs, with GPUs, with more than 64 GiB of memory; repeatable. "
            "Default: what it has.",
        ),
    ] = ()
    name: Annotated[
        str | None,
        option(
            "--name",
            metavar="HOST",
            help="Name of this host. Default: MLEBENCH_HOST_NAME, or the machine's name, with the number of the Slurm "
            "job.",
        ),
    ] = None
    lifetime: Annotated[
        float | None,
        option(
            "--lifetime",
            type=POSITIVE_DURATION,
            metavar="TIME",
            help="Time until this host is taken away. Runs are handed over before. Default: until the end of the Slurm "
            "job.",
        ),
    ] = None

    def apply(self) -> None:
        """Set what the processes of flow runs inherit."""
        from common import slurm
        from common.settings import get_settings
        from tasks.wiring import job

        slurm.forget_ended()
        get_settings.cache_clear()
        name, number = self.name, slurm.job()
        if name is None and number is not None and get_settings().host_name == socket.gethostname():
            # Two jobs on one machine are two hosts: each has its own cores, and its own end.
            name = f"{socket.gethostname()}-job{number}"
        for variable, value in (("MLEBENCH_AGENTS", self.slots), ("MLEBENCH_HOST_NAME", name)):
            if value is not None:
                os.environ[variable] = str(value)
        get_settings.cache_clear()
        job.begin(slurm.seconds_left() if self.lifetime is None else self.lifetime)


@click.command("worker")
@takes(host=HostOptions)
@click.option("--docker", is_flag=True, help="Agents will run in containers: a Docker engine must answer.")
@click.option("--check", "only_check", is_flag=True, help="Check this host and exit.")
@click.option("--with-healthcheck", "healthcheck", is_flag=True, help="Serve Prefect's health check on port 8080.")
def command(host: HostOptions, docker: bool, only_check: bool, healthcheck: bool) -> int:
    """Run agents on this host: take attempts from a work pool until this command is ended, or its job ends.

    The host needs PREFECT_API_URL, MLEBENCH_STORE with its credentials, and for agents that are not trusted Docker or
    bubblewrap. It is checked first. If this command ends, agents in progress go on, and the next worker on this host
    finds them. Before the end of its Slurm job or its --lifetime, and after SIGUSR1, it takes no attempt that cannot
    end in time, and gives back the others with a last checkpoint.
    """
    from flows.fleet.queues import require_server
    from flows.fleet.registration import BEAT_SECONDS, SAFE, watch_silence

    os.environ |= SAFE
    # The health check answers everybody who reaches it, so it listens on this machine only.
    os.environ.setdefault("PREFECT_WORKER_WEBSERVER_HOST", HOST)
    os.environ.setdefault("PREFECT_FLOWS_HEARTBEAT_FREQUENCY", str(BEAT_SECONDS))
    os.environ.setdefault("PREFECT_WORKER_QUERY_SECONDS", _QUERY_SECONDS)
    from common import slurm
    from common.settings import get_settings
    from flows.diagnosis import health
    from tasks.wiring import job
    from tasks.wiring.context import open_store

    host.apply()
    settings = get_settings()
    pool_name = host.pool or settings.agent_pool or "agents"
    require_server()
    findings = _check_host(settings, open_store(), docker)
    show_findings(findings)
    if any(finding.verdict == "fail" for finding in findings):
        raise UserError(f"host {settings.host_name} is not ready: see the failed checks above")
    host_labels = list(host.labels) or health.labels()
    click.echo(
        f"Host {settings.host_name}: {settings.agents} slots, {', '.join(host_labels)}; work pool {pool_name}, "
        f"store {settings.store}"
    )
    if leaves_at := job.leaves_at():
        click.echo(f"It leaves at {datetime.fromtimestamp(leaves_at):%Y-%m-%d %H:%M:%S}, before its job ends.")
    elif slurm.job() is not None:
        click.echo(f"No end of Slurm job {slurm.job()} is known: if it has a time limit, give it as --lifetime.")
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
        ("rootless", lambda: health.check_rootless(settings.scratch)),
    ]
    return [finding for about, check in checks for finding in health.guarded(about, check)]
