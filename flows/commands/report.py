"""mlebench report."""

from __future__ import annotations

from pathlib import Path

import click

from competitions.errors import UserError
from flows.commands.options import open_store, store_option


@click.command("report")
@click.argument("run_groups", nargs=-1, required=True)
@store_option
def command(run_groups: tuple[str, ...], store: str | None, data_dir: Path | None) -> None:
    """Write the report of one or several RUN_GROUPS from the tables in the store and print where it lies."""
    from flows.commands.options import quiet_prefect

    quiet_prefect()
    from storage.tables import read_table
    from tasks.aggregate import write_report

    place = open_store(store, data_dir)
    for group in run_groups:
        if not len(read_table(place, "grades", [group])):
            raise UserError(f"no graded runs of group {group!r} in {place.root}")
    url = write_report(place, list(run_groups))
    click.echo(place.local(place.relative(url)) or url)
