"""mlebench run, the same as `python -m flows.full_benchmark`."""

from __future__ import annotations

import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import click

from competitions import registry
from flows.commands.options import open_store, preparation, raw_directory, selected, selection, store_option


@click.command("run")
@selection
@click.option("--agent", default="baseline", show_default=True, help="Name of an agent, or the path of its folder.")
@click.option("--seeds", type=click.IntRange(1), default=1, show_default=True, help="Runs of each competition.")
@click.option(
    "--run-group", help="Name of this set of runs; naming one that exists goes on with it. Default: agent and time."
)
@click.option(
    "--time-limit", type=click.FloatRange(1), metavar="SECONDS", help="Wall-clock limit of a run. Default: the agent's."
)
@click.option(
    "--allow-untrusted",
    is_flag=True,
    help="Run an untrusted agent without isolation. It can read this machine's files.",
)
@click.option(
    "--backend",
    type=click.Choice(["process", "docker"]),
    default="process",
    show_default=True,
    help="Where agents run: as processes, for trusted agents, or in containers.",
)
@click.option(
    "--network",
    type=click.Choice(["none", "gateway", "allowlist", "open"]),
    default="gateway",
    show_default=True,
    help="What agents in containers reach besides the validation service: nothing, the LLM gateway, also the hosts of "
    "MLEBENCH_ALLOWED_HOSTS, everything.",
)
@click.option("--runtime", metavar="NAME", help="Container runtime: runc, sysbox-runc, runsc. Default: the engine's.")
@click.option(
    "--allow-privileged",
    is_flag=True,
    help="Run an agent that wants a privileged container. It can take over this machine.",
)
@click.option(
    "--obfuscated", is_flag=True, help="Do not tell agents which competition it is: another description, and no name."
)
@click.option("--integrity", is_flag=True, help="Look through what agents leave for plagiarism and broken rules.")
@preparation
@store_option
def command(
    agent: str,
    seeds: int,
    run_group: str | None,
    time_limit: float | None,
    allow_untrusted: bool,
    backend: Any,
    network: Any,
    runtime: str | None,
    allow_privileged: bool,
    obfuscated: bool,
    integrity: bool,
    raw_dir: Path | None,
    keep_raw: bool,
    skip_verification: bool,
    edition: Any,
    store: str | None,
    data_dir: Path | None,
    **which: Any,
) -> int:
    """The full benchmark: prepare competitions, run an agent on each with several seeds, grade, and report.

    What is prepared, run or graded already is reused.
    """
    from common.settings import get_settings
    from sandbox.definitions import load_agent
    from sandbox.isolation import Isolation
    from storage.store import check_run_group

    ids = selected(**which)
    chosen = load_agent(agent, get_settings().agent_dirs)
    if backend == "process" and not chosen.trusted and not allow_untrusted:
        raise click.UsageError(
            f"agent {chosen.name!r} is not trusted and would run without isolation: use --backend docker; "
            "--allow-untrusted accepts that"
        )
    group = check_run_group(run_group or f"{chosen.full_name.replace('@', '-')}-{datetime.now(UTC):%Y%m%dT%H%M%SZ}")
    if obfuscated:
        for name in ids:
            _ = registry.get(name).obfuscated_description  # now rather than after hours of preparing
    isolation = Isolation(backend, network, runtime, allow_untrusted, allow_privileged)
    if backend == "docker":
        from sandbox.docker.preflight import check

        check(chosen, isolation, get_settings().allowed_hosts)
    place = open_store(store, data_dir)
    place.check()
    raw = raw_directory(raw_dir)
    from flows.commands.session import run_flow

    started = time.monotonic()

    def flow() -> Any:
        from flows.full_benchmark import full_benchmark

        how = (time_limit, isolation, obfuscated, integrity)
        return full_benchmark(ids, agent, group, place.root, seeds, edition, raw, keep_raw, skip_verification, *how)

    click.echo(
        f"Run group {group}: {len(ids)} competitions, {seeds} seeds, agent {chosen.full_name}, store {place.root}"
    )
    try:
        code = run_flow(f"{chosen.full_name} as {group}", flow)
    except KeyboardInterrupt:
        if not run_group:
            click.echo(f"to go on with these runs, add: --run-group {group}", err=True)
        raise
    from flows.commands.results import show_results

    show_results(place, group)
    click.echo(f"{time.monotonic() - started:.0f} s in all")
    return code
