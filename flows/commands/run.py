"""mlebench run, the same as `python -m flows.full_benchmark`."""

from __future__ import annotations

import os
import time
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from common.units import counted
from competitions import registry
from competitions.editions import Edition
from flows.commands.answers import answer, say, takes_json
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
    from sandbox.definitions import Agent
    from tasks.wiring.requests import RunRequest


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
    from flows.credentials import require_agent_credentials, require_downloads
    from sandbox.definitions import load_agent
    from sandbox.isolation import Isolation
    from storage.dataset import Dataset
    from tasks.wiring.requests import RunRequest

    get_settings.cache_clear()
    pool = placing.pool or get_settings().agent_pool
    if placing.detach and pool is None:
        raise click.UsageError("--detach needs a work pool: give --pool NAME, or set MLEBENCH_AGENT_POOL")
    if run.retry and run.run_group is None:
        raise click.UsageError("--retry needs the name of the group: give --run-group NAME")
    if run.seed and run.seeds != 1:
        raise click.UsageError("--seed and --seeds are alternatives; give one of them")
    if run.retain:
        click.echo("`--retain` keeps no container: what the agent left is in the store; see `mlebench show`", err=True)
    if run.container_config is not None:
        run, isolation = _configured(run.container_config, run, isolation)
    ids = selection.ids()
    chosen = load_agent(run.agent, get_settings().agent_dirs)
    if isolation.backend == "process" and not chosen.trusted and not isolation.allow_untrusted:
        raise click.UsageError(_untrusted(chosen))
    wanted = Isolation(
        isolation.backend, isolation.network, isolation.runtime, isolation.allow_untrusted, isolation.allow_privileged
    )
    place = storage.open()
    request = RunRequest(
        agent=run.agent,
        run_group=run.run_group or f"{chosen.full_name.replace('@', '-')}-{datetime.now(UTC):%Y%m%dT%H%M%SZ}",
        store=place.root,
        seeds=run.seeds,
        only_seeds=run.seed,
        retry=run.retry or (),
        edition=edition,
        time_limit_seconds=run.time_limit,
        max_memory=run.max_memory,
        max_cpus=run.max_cpus,
        max_disk=run.max_disk,
        checkpoint_every=run.checkpoint_every,
        isolation=wanted,
        obfuscated=run.obfuscated,
        overwrite=run.overwrite,
        examine=run.integrity,
    )
    request.require_hidden_answers(ids)  # fails now, not after hours of preparing
    if run.obfuscated:
        for name in ids:
            _ = registry.get(name).obfuscated_description
    if isolation.backend == "docker" and pool is None:  # with a pool, images and engines are those of its hosts
        from sandbox.docker.preflight import require_runnable
        from tasks.wiring.context import stated_limits

        limits = stated_limits(chosen, request, get_settings())
        require_runnable(chosen.model_copy(update={"limits": limits}), wanted, get_settings().allowed_hosts)
    raw = raw_directory(preparation.raw_dir)
    if pool is None:  # with a pool, it is its hosts that need them
        require_agent_credentials(request, ids)
    if run.dry_run:
        from flows.commands.plan import show_plan

        return show_plan(request, ids, raw)
    place.require_usable(on_wait=lambda text: click.echo(f"waiting {text}", err=True))
    _require_replaceable(request, ids)
    if not placing.detach:
        require_downloads(place, [Dataset(edition, name) for name in ids], raw)
    from flows.commands.reusing import nothing_to_do, show_reused
    from flows.commands.session import run_flow
    from flows.commands.stopping import INTERRUPTED

    if pool is not None:
        from flows.fleet.setup import require_server

        require_server()
    started = time.monotonic()

    def flow() -> Any:
        from flows.full_benchmark import full_benchmark

        return full_benchmark(
            ids, request, raw, preparation.keep_raw, preparation.skip_verification, pool, placing.priority
        )

    group = request.run_group
    say(
        f"Run group {group}: {counted(len(ids), 'competition')}, {counted(len(request.seed_numbers), 'seed')}, "
        f"agent {chosen.full_name}, store {place.root}"
    )
    if placing.detach:
        from flows.fleet.detached import submit

        submit(
            str(pool),
            {
                "competition_ids": ids,
                "request": request,
                "raw_dir": raw,
                "keep_raw": preparation.keep_raw,
                "skip_verification": preparation.skip_verification,
                "priority": placing.priority,
            },
        )
        say(f"Handed over to work pool {pool}. {_commands(group)}")
        answer({"kind": "handed over", "run_group": group, "pool": pool})
        return 0
    go_on = f"stopped. Finished work is kept; to continue, run the same command with --run-group {group}."
    try:
        if pool is None and nothing_to_do(request, ids, raw, verified=not preparation.skip_verification):
            code = show_reused(request, ids)
        else:
            code = run_flow(f"{chosen.full_name} as {group}", flow, leaves_agents=pool is not None, go_on=go_on)
    except KeyboardInterrupt:
        if pool is not None:
            click.echo(
                f"The agents of group {group} go on; no others are handed out. {_commands(group)} "
                f"To continue, add --run-group {group} to this command.",
                err=True,
            )
            return INTERRUPTED
        click.echo(f"mlebench: {go_on}", err=True)
        return INTERRUPTED
    from flows.commands.results import show_results

    code = max(code, show_results(place, group))
    say(f"{time.monotonic() - started:.0f} s in total")
    return code


def _configured(path: Path, run: RunOptions, isolation: IsolationOptions) -> tuple[RunOptions, IsolationOptions]:
    """The options with what the published tool's container configuration says, where they say nothing themselves."""
    from flows.commands.container_config import read_container_config

    found = read_container_config(path)
    for line in found.unused:
        click.echo(line, err=True)
    return (
        replace(
            run,
            max_memory=run.max_memory or found.memory,
            max_cpus=run.max_cpus or found.cpus,
            max_disk=run.max_disk or found.disk,
        ),
        replace(isolation, runtime=isolation.runtime or found.runtime),
    )


def _untrusted(agent: Agent) -> str:
    """Why the process backend refuses an agent, and what to do."""
    refused = f"agent {agent.name!r} is not trusted and would run without isolation: use --backend docker"
    if agent.claims_trust:
        return (
            f"{refused}, or, if it is your own, trust its folder with MLEBENCH_AGENT_DIRS={agent.folder} (elsewhere "
            "`trusted: true` in agent.yaml is ignored)"
        )
    return f"{refused}, or accept that with --allow-untrusted"


def _require_replaceable(request: RunRequest, competition_ids: list[str]) -> None:
    """Refuse to overwrite runs of other conditions before anything begins. Tasks check it again for their own run."""
    from storage.runs.folders import finished_folders
    from tasks.wiring.attempts import attempts_of, require_replaceable
    from tasks.wiring.context import open_store

    made = {(each.competition_id, each.seed) for each in finished_folders(open_store(request.store), request.run_group)}
    for name in competition_ids:
        if any(competition == name for competition, _ in made):
            for attempt in attempts_of(request, name):
                # Without a dataset the key of the run is not known; the dataset may be prepared elsewhere.
                if attempt.dataset_key is not None and (name, attempt.seed) in made:
                    require_replaceable(attempt)


def _commands(group: str) -> str:
    return f"`mlebench watch {group}` shows them, `mlebench cancel {group}` ends them."
