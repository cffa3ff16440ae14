"""mlebench report."""

from __future__ import annotations

from typing import Any

import click

from flows.commands.options import StoreOptions, takes


@click.command("report")
@click.argument("run_groups", nargs=-1, required=True)
@click.option(
    "--incomplete",
    type=click.Choice(["exclude", "fail"]),
    default="exclude",
    show_default=True,
    help="Seeds with ungraded competitions: exclude them from the split, or count the missing ones as failures.",
)
@click.option(
    "--interval",
    type=click.Choice(["t", "bootstrap"]),
    default="t",
    show_default=True,
    help="Confidence intervals: Student's t over seeds, or a bootstrap over competitions.",
)
@click.option(
    "--split",
    metavar="NAME",
    help="Count all competitions of this split, also those that were never run. Default: those that each group ran.",
)
@takes(storage=StoreOptions)
def command(
    run_groups: tuple[str, ...],
    incomplete: Any,
    interval: Any,
    split: str | None,
    storage: StoreOptions,
) -> None:
    """Write the report of one or several RUN_GROUPS, side by side, from the tables in the store.

    Writes report.html and report.md, and the aggregates to tables/aggregates. Prints the path of the page.
    """
    from storage.runs.folders import no_runs
    from storage.tables import read_table, upgrade_tables
    from tasks.report import write_aggregates, write_report

    place = storage.open()
    groups = list(dict.fromkeys(run_groups))
    for group in groups:
        if not len(read_table(place, "grades", [group])):
            raise no_runs(place, group, "graded runs")
    for group in groups:
        upgrade_tables(place, group)
        write_aggregates(place, group, incomplete, interval, split)
    url = write_report(place, groups, incomplete=incomplete, interval=interval, split=split)
    click.echo(place.shown(url))
