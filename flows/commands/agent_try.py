"""mlebench agent try."""

from __future__ import annotations

import shlex
from datetime import UTC, datetime

import click

from common.errors import UserError
from common.units import counted
from flows.commands.completion import AGENTS, COMPETITIONS
from flows.commands.options import StoreOptions, takes
from flows.commands.quantities import TIME_LIMIT

_SHOWN_LOG_LINES = 20


@click.command("try", context_settings={"ignore_unknown_options": True})
@click.argument("agent", shell_complete=AGENTS)
@click.argument("run_options", nargs=-1, type=click.UNPROCESSED)
@click.option(
    "-c",
    "--competition",
    metavar="ID",
    default="diabetes",
    show_default=True,
    help="A small competition.",
    shell_complete=COMPETITIONS,
)
@click.option(
    "--time-limit",
    type=TIME_LIMIT,
    default="5m",
    show_default=True,
    metavar="TIME",
    help="Wall-clock limit of the run.",
)
@takes(storage=StoreOptions)
def command(
    agent: str, run_options: tuple[str, ...], competition: str, time_limit: float, storage: StoreOptions
) -> int:
    """Try AGENT on one small competition with a short time limit, and show the end of its log.

    RUN_OPTIONS are options of `mlebench run`, such as --backend docker. The run is in a group of its own, `try-...`.
    Exit code 1 unless the agent left a valid submission.
    """
    from common.settings import get_settings
    from flows.commands.run import TRIAL
    from flows.commands.run import command as run
    from flows.commands.stopping import INTERRUPTED
    from sandbox.agent_registry import load_agent
    from storage.runs.folders import RunFolder, StoredRun

    if agent.startswith("-"):  # an option that is not of this command, before any agent
        raise click.NoSuchOption(agent)
    definition = load_agent(agent, get_settings().agent_dirs)
    limit = min(time_limit, definition.limits.time_limit_seconds)
    store = storage.open(new=True)
    group = f"try-{definition.full_name.replace('@', '-')}-{datetime.now(UTC):%Y%m%dT%H%M%SZ}"
    arguments = ["-c", competition, "--agent", agent, "--run-group", group, "--time-limit", f"{limit:g}"]
    arguments = [*arguments, "--store", store.root, *run_options]
    with run.make_context("mlebench agent try", arguments, obj=TRIAL) as context:
        code = run.invoke(context)
    given = context.params
    if code == INTERRUPTED or given["dry_run"] or given["detach"]:
        return int(code)
    folder = RunFolder(store, given["run_group"], competition, min(given["seed"], default=0))
    record, grade = folder.read_run(), folder.read_grade()
    if record is None:
        raise UserError("the run was not made; the lines above say why")
    log = f"{StoredRun(folder, record).source}/logs/agent.log"
    lines = store.read(log).decode(errors="replace").splitlines() if store.exists(log) else []
    click.echo(f"The end of its log ({counted(len(lines), 'line')} in all):" if lines else "It has written nothing.")
    for line in lines[-_SHOWN_LOG_LINES:]:
        click.echo(f"  {line}")
    if grade is None or grade.outcome != "valid":
        return 1
    click.echo(f"Next: mlebench run --split demo --agent {shlex.quote(agent)} --seeds 2")
    return 0
