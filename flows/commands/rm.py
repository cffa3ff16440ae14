"""mlebench rm."""

from __future__ import annotations

import sys
from typing import Any

import click

from common.errors import UserError
from common.units import counted, data_size
from flows.commands.advice import advised
from flows.commands.answers import answer, say, takes_json
from flows.commands.options import StoreOptions, takes
from flows.commands.types import RUN_GROUP
from storage.runs.folders import similar_groups
from storage.store import Store


@click.command("rm")
@click.argument("run_groups", type=RUN_GROUP, nargs=-1, required=True)
@click.option("--episodes", is_flag=True, help="Remove episodes: each name is a --name of `mlebench serve`.")
@click.option("-y", "--yes", is_flag=True, help="Do not ask.")
@click.option("--dry-run", "dry", is_flag=True, help="Only show what would be removed.")
@takes(storage=StoreOptions)
@takes_json
def command(run_groups: tuple[str, ...], episodes: bool, yes: bool, dry: bool, storage: StoreOptions) -> None:
    """Remove RUN_GROUPS: submissions, logs, code, grades, evidence, tables and reports.

    Asks before, and refuses groups with runs in progress. Reports that compare a group with others are kept. Without
    --episodes, episodes of the same name are kept. With it, end their server first.
    """
    from storage.store import check_run_group
    from storage.upkeep.groups import group_names, parts_of, remove_group
    from tasks.wiring.in_progress import in_progress

    store = storage.open()
    groups = [check_run_group(name) for name in dict.fromkeys(run_groups)]
    for group in groups:
        if not parts_of(store, group, episodes):
            what, listing = ("episodes of", "ls --episodes") if episodes else ("run group", "ls")
            raise UserError(
                f"no {what} {group!r} in {store.root}; `mlebench {listing}` lists the names."
                f"{similar_groups(group, group_names(store, episodes))}"
            )
        if episodes:
            continue
        live_runs = [run for run in in_progress(store, group) if run.state != "interrupted"]
        if live_runs:
            stop = advised(f"mlebench cancel {group}", store)
            raise UserError(f"{counted(len(live_runs), 'run')} of group {group} are in progress; `{stop}` ends them")
    if not (dry or yes or sys.stdin.isatty()):
        raise click.UsageError("give --yes to remove without being asked")
    sizes = {group: _size(store, group, episodes) for group in groups}
    shown = {group: f"{group}: {counted(files, 'file')}, {data_size(used)}" for group, (files, used) in sizes.items()}
    if not dry:
        store.require_usable()
        if not yes:
            click.echo("\n".join(shown.values()), err=True)
            if not click.confirm("Remove for good?", err=True):
                click.echo("nothing removed", err=True)
                return
    done = "would remove" if dry else "removed"
    for group, (files, used) in sizes.items():
        if not dry:
            remove_group(store, group, episodes)
        say(f"{done} {shown[group]}")
        answer({"done": done, "run_group": group, "files": files, "bytes": used})


def _size(store: Store, group: str, episodes: bool) -> tuple[int, int]:
    """The number of files of a run group or a training, and their bytes."""
    from storage.upkeep.groups import parts_of

    found: list[Any] = []
    for url in parts_of(store, group, episodes):
        found += store.top.fs.find(store.top.path(store.relative(url)), detail=True).values()
    return len(found), sum(details["size"] or 0 for details in found)
