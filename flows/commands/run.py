"""mlebench run, the same as `python -m flows.full_benchmark`."""

from __future__ import annotations

import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import click

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
@preparation
@store_option
def command(
    agent: str,
    seeds: int,
    run_group: str | None,
    time_limit: float | None,
    allow_untrusted: bool,
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
    from sandbox.agents import load_agent
    from storage.settings import get_settings
    from storage.store import check_run_group

    ids = selected(**which)
    chosen = load_agent(agent, get_settings().agent_dirs)
    if not chosen.trusted and not allow_untrusted:
        raise click.UsageError(
            f"agent {chosen.name!r} is not trusted and would run without isolation; --allow-untrusted accepts that"
        )
    group = check_run_group(run_group or f"{chosen.name}-{datetime.now(UTC):%Y%m%dT%H%M%SZ}")
    place = open_store(store, data_dir)
    place.check()
    raw = raw_directory(raw_dir)
    from flows.commands.session import run_flow

    started = time.monotonic()

    def flow() -> Any:
        from flows.full_benchmark import full_benchmark

        return full_benchmark(
            ids, agent, group, place.root, seeds, edition, raw, keep_raw, skip_verification, time_limit, allow_untrusted
        )

    click.echo(f"Run group {group}: {len(ids)} competitions, {seeds} seeds, agent {chosen.name}, store {place.root}")
    try:
        code = run_flow(f"{chosen.name} as {group}", flow)
    except KeyboardInterrupt:
        if not run_group:
            click.echo(f"to go on with these runs, add: --run-group {group}", err=True)
        raise
    from flows.commands.results import show_results

    show_results(place, group)
    click.echo(f"{time.monotonic() - started:.0f} s in all")
    return code
