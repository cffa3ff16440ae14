"""mlebench dev download-leaderboard."""

from __future__ import annotations

from collections.abc import Sequence

import click

from common.causes import cause_of, explain
from competitions import registry
from flows.commands.leaderboard import refresh_leaderboard
from flows.commands.options import Selection, StoreOptions, takes


@click.command("download-leaderboard")
@takes(selection=Selection, storage=StoreOptions)
@click.option("--force", is_flag=True, help="Also fetch those that the store already has.")
def command(selection: Selection, storage: StoreOptions, force: bool) -> int:
    """Fetch the current leaderboards of several competitions from Kaggle, as `leaderboard --refresh` does for one.

    A failure does not stop the rest. Exit code 1 if any failed.
    """
    from storage.sources.kaggle.leaderboard import read_leaderboard

    ids = selection.ids()
    store = storage.open_usable()
    missing = [name for name in ids if force or read_leaderboard(store, name) is None]
    if len(missing) < len(ids):
        click.echo(f"{len(ids) - len(missing)} reused: fetched already; --force fetches them again")
    return fetch_each(missing, storage)


def fetch_each(ids: Sequence[str], storage: StoreOptions) -> int:
    """Fetch leaderboards one after the other; returns the exit code."""
    failed = False
    for name in ids:
        click.echo(f"{name}:")
        try:
            refresh_leaderboard(registry.get(name), storage)
        except Exception as error:
            if cause_of(error).fault == "program":
                raise
            click.echo(f"{name}: {explain(error)}", err=True)
            failed = True
    return 1 if failed else 0
