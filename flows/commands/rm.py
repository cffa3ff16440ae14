"""mlebench rm."""

from __future__ import annotations

import sys

import click

from common.errors import UserError, close_matches
from common.units import counted, size
from flows.commands.advice import advised
from flows.commands.ls import readable
from flows.commands.options import RUN_GROUP, StoreOptions, takes


@click.command("rm")
@click.argument("run_groups", type=RUN_GROUP, nargs=-1, required=True)
@click.option("-y", "--yes", is_flag=True, help="Do not ask.")
@takes(storage=StoreOptions)
def command(run_groups: tuple[str, ...], yes: bool, storage: StoreOptions) -> None:
    """Remove RUN_GROUPS: submissions, logs, code, grades, evidence, tables and reports.

    Asks before, and refuses groups with runs in progress. Reports that compare a group with others are kept.
    """
    from storage.store import check_run_group
    from storage.upkeep.groups import group_names, parts_of, remove_group
    from tasks.wiring.in_progress import in_progress

    store = readable(storage.open())
    groups = [check_run_group(name) for name in dict.fromkeys(run_groups)]
    for group in groups:
        if not parts_of(store, group):
            raise UserError(f"no run group {group!r} in {store.root}.{close_matches(group, group_names(store))}")
        live_runs = [run for run in in_progress(store, group) if run.state != "interrupted"]
        if live_runs:
            stop = advised(f"mlebench cancel {group}", store)
            raise UserError(f"{counted(len(live_runs), 'run')} of group {group} are in progress; `{stop}` ends them")
    store.require_usable()
    if not yes:
        if not sys.stdin.isatty():
            raise click.UsageError("give --yes to remove without being asked")
        for group in groups:
            files, used = 0, 0
            for url in parts_of(store, group):
                details_by_path = store.top.fs.find(store.top.path(store.relative(url)), detail=True)
                files += len(details_by_path)
                used += sum(details["size"] or 0 for details in details_by_path.values())
            click.echo(f"{group}: {counted(files, 'file')}, {size(used)}")
        if not click.confirm("Remove for good?"):
            click.echo("nothing removed")
            return
    for group in groups:
        remove_group(store, group)
        click.echo(f"removed {group}")
