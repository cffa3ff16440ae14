"""mlebench run, the same as `python -m flows.full_benchmark`."""

from __future__ import annotations

import os
import time
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from common import slurm
from common.units import counted, elapsed
from competitions import registry
from competitions.editions import Edition
from flows.commands.answers import answer, say, takes_json
from flows.commands.availability import say_availability
from flows.commands.marks import warn_of_marks
from flows.commands.options import (
    EDITION,
    GroupedCommand,
    PreparationOptions,
    Selection,
    StoreOptions,
    raw_directory,
    takes,
)
from flows.commands.run_options import IsolationOptions, PlacingOptions, RunOptions

if TYPE_CHECKING:
    from common.splits import RecordedSplit
    from flows.commands.preflight import Benchmark
    from sandbox.definitions import Agent
    from storage.store import Store
    from tasks.wiring.requests import RunRequest


TRIAL = object()
"""The object of the click context in which `agent try` calls this command: a single run is made without Prefect."""


@click.command("run", cls=GroupedCommand)
@takes_json
@takes(
    selection=Selection,
    run=RunOptions,
    placing=PlacingOptions,
    isolation=IsolationOptions,
    preparation=PreparationOptions,
    storage=StoreOptions,
)
@EDITION.named("edition", default="v1", title=PreparationOptions.TITLE)
def command(
    selection: Selection,
    run: RunOptions,
    placing: PlacingOptions,
    isolation: IsolationOptions,
    preparation: PreparationOptions,
    storage: StoreOptions,
    edition: Edition,
) -> int:
    """Run the full benchmark: prepare competitions, run an agent on each with several seeds, grade, and report.

    Already prepared, run or graded work is skipped. Ctrl-C ends the agents, but leaves those in a work pool alone. Exit
    code 1 if something failed, or if every run of an agent crashed.
    """
    if placing.agents is not None:
        os.environ["MLEBENCH_AGENTS"] = str(placing.agents)  # for this process and those that it starts
    from common.settings import get_settings
    from flows.commands.direct import is_single, nothing_to_do
    from flows.commands.preflight import Benchmark, require_ready
    from flows.fleet.registration import BEAT_SECONDS
    from sandbox.agent_registry import load_agent
    from tasks.wiring.context import RunContext

    get_settings.cache_clear()
    preparation.apply()
    pool = placing.pool or get_settings().agent_pool
    _require_consistent(run, placing, pool)
    if pool is not None:  # for `mlebench watch`, to which a command that was killed is silent for three beats
        os.environ.setdefault("PREFECT_FLOWS_HEARTBEAT_FREQUENCY", str(BEAT_SECONDS))
    if run.retain:
        click.echo("`--retain` keeps no container: what the agent left is in the store; see `mlebench show`", err=True)
    if run.container_config is not None:
        run, isolation = _configured(run.container_config, run, isolation)
    ids, settings = selection.ids(), get_settings()
    split = registry.recorded_split(selection.split, ids)
    agent, store = load_agent(run.agent, settings.agent_dirs), storage.open(new=True)
    benchmark = Benchmark(
        RunContext(_request(run, isolation, agent, store, edition, split), settings, store, agent),
        ids,
        raw_directory(preparation.raw_dir),
        preparation.keep_raw,
        preparation.skip_verification,
        pool,
        placing.priority,
        placing.detach,
    )
    require_ready(benchmark, dry_run=run.dry_run)
    warn_of_marks(ids)
    if run.dry_run:
        from flows.commands.dry_run import show_plan

        return show_plan(benchmark)
    request = benchmark.context.request
    runs = counted(len(ids) * len(request.seed_numbers), "run")
    where = f"work pool {pool}" if pool else f"backend {request.isolation.backend}"
    say(
        f"Running agent {agent.full_name} on {counted(len(ids), 'competition')}, {runs} in group {request.run_group} "
        f"({where}, store {store.root})"
    )
    say_availability(store, ids, [edition], benchmark.raw_dir)
    if placing.detach:
        return _hand_over(benchmark)
    is_trial = click.get_current_context().obj is TRIAL
    direct = is_single(benchmark) if is_trial else pool is None and nothing_to_do(benchmark)
    return _run(benchmark, direct)


def _require_consistent(run: RunOptions, placing: PlacingOptions, pool: str | None) -> None:
    """Raise `UsageError` for options that contradict each other."""
    if placing.detach and pool is None:
        raise click.UsageError("--detach needs a work pool: give --pool NAME, or set MLEBENCH_AGENT_POOL")
    if run.retry and run.run_group is None:
        raise click.UsageError("--retry needs the name of the group: give --run-group NAME")
    if run.feedback_required and run.feedback is None:
        raise click.UsageError("--feedback-required needs --feedback")
    if run.feedback_calls is not None and run.feedback is None:
        raise click.UsageError("--feedback-calls needs --feedback")
    if run.seed and run.seeds != 1:
        raise click.UsageError("--seed and --seeds are alternatives; give one of them")


def _configured(path: Path, run: RunOptions, isolation: IsolationOptions) -> tuple[RunOptions, IsolationOptions]:
    """The options, with the values of the published tool's container configuration where none is given."""
    from flows.commands.container_config import read_container_config

    config = read_container_config(path)
    for line in config.unused:
        click.echo(line, err=True)
    return (
        replace(
            run,
            max_memory=run.max_memory or config.memory,
            max_cpus=run.max_cpus or config.cpus,
            max_disk=run.max_disk or config.disk,
        ),
        replace(isolation, runtime=isolation.runtime or config.runtime),
    )


def _request(
    run: RunOptions,
    isolation: IsolationOptions,
    agent: Agent,
    store: Store,
    edition: Edition,
    split: RecordedSplit | None,
) -> RunRequest:
    from sandbox.isolation import Isolation
    from tasks.wiring.requests import RunRequest

    return RunRequest(
        agent=run.agent,
        run_group=run.run_group or f"{agent.full_name.replace('@', '-')}-{datetime.now(UTC):%Y%m%dT%H%M%SZ}",
        store=store.root,
        seeds=run.seeds,
        only_seeds=run.seed,
        retry=run.retry or (),
        edition=edition,
        time_limit_seconds=run.time_limit,
        max_memory=run.max_memory,
        max_cpus=run.max_cpus,
        max_disk=run.max_disk,
        checkpoint_every=run.checkpoint_every,
        isolation=Isolation(
            isolation.backend,
            isolation.network,
            isolation.runtime,
            isolation.allow_untrusted,
            isolation.allow_privileged,
        ),
        obfuscated=run.obfuscated,
        scorer=run.scorer,
        feedback=run.feedback,
        **({} if run.feedback_calls is None else {"feedback_calls": run.feedback_calls}),
        feedback_required=run.feedback_required,
        overwrite=run.overwrite,
        examine=run.integrity,
        split=split,
    )


def _hand_over(benchmark: Benchmark) -> int:
    """Hand everything over to the hosts of the work pool; returns the exit code."""
    from flows.fleet.registration import submit_benchmark

    group, pool = benchmark.context.request.run_group, benchmark.pool
    submit_benchmark(str(pool), benchmark.parameters())
    say(f"Handed over to work pool {pool}. {_commands(group)}")
    answer({"kind": "handed over", "run_group": group, "pool": pool})
    return 0


def _run(benchmark: Benchmark, direct: bool) -> int:
    """Run the flow, or with `direct` do the same without it, and print the results; returns the exit code."""
    from flows.commands.direct import run_directly
    from flows.commands.results import show_results
    from flows.commands.session import run_flow
    from flows.commands.stopping import INTERRUPTED
    from tasks.wiring import job

    def flow() -> Any:
        from flows.full_benchmark import full_benchmark

        if benchmark.pool is not None:
            from flows.fleet.registration import register

            register(benchmark.pool)
        return full_benchmark(**benchmark.parameters())

    slurm.forget_ended()
    if slurm.job() is not None:
        job.begin(slurm.seconds_left())
    started = time.monotonic()
    context, in_pool = benchmark.context, benchmark.pool is not None
    group = context.request.run_group
    go_on = (
        f"The agents of group {group} go on; no others are handed out. {_commands(group)} To continue, add "
        f"--run-group {group} to this command."
        if in_pool
        else f"stopped. Finished work is kept; to continue, run the same command with --run-group {group}."
    )
    try:
        if direct:
            code = run_directly(benchmark, go_on)
        else:
            code = run_flow(f"{context.agent.full_name} as {group}", flow, leaves_agents=in_pool, go_on=go_on)
    except KeyboardInterrupt:
        click.echo(f"mlebench: {go_on}", err=True)
        return INTERRUPTED
    code = max(code, show_results(context.store, group))
    say(f"{elapsed(time.monotonic() - started)} in total")
    return code


def _commands(group: str) -> str:
    return f"`mlebench watch {group}` shows them, `mlebench cancel {group}` ends them."
