"""mlebench export."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import click

from common.errors import UserError
from common.units import counted
from competitions.editions import EDITIONS
from flows.commands.options import StoreOptions, takes


@click.command("export")
@click.argument("run_group")
@click.option(
    "--output-dir",
    type=click.Path(file_okay=False, path_type=Path),
    default=Path(),
    help="Directory for the report. Default: the current one.",
)
@click.option("--by-seed", is_flag=True, help="Write one report for each seed, as the public leaderboard requires.")
@click.option("--edition", type=click.Choice(EDITIONS), help="Edition to export, for a group that is graded in both.")
@takes(storage=StoreOptions)
def command(
    run_group: str,
    output_dir: Path,
    by_seed: bool,
    edition: str | None,
    storage: StoreOptions,
) -> None:
    """Write the grading report of RUN_GROUP in the published format (`<time>_grading_report.json`).

    Runs whose grading failed are left out, with a warning.
    """
    from grading.report import summarise
    from grading.statistics.series import latest_grades
    from storage.runs.folders import no_runs
    from storage.tables import read_table
    from tasks.report import reports_of

    place = storage.open()
    grades = read_table(place, "grades", [run_group])
    if not len(grades):
        raise no_runs(place, run_group, "graded runs")
    grades = latest_grades(grades)
    editions = sorted(set(grades["edition"]))
    if edition is None and len(editions) > 1:
        raise UserError(f"group {run_group!r} is graded as {' and '.join(editions)}; choose one with --edition")
    grades = grades[grades["edition"] == (edition or editions[0])].sort_values(["seed", "competition_id"])
    failed = int((grades["outcome"] == "failed").sum())
    grades = grades[grades["outcome"] != "failed"]
    if grades.empty:
        raise UserError(f"nothing of group {run_group!r} was graded as {edition or editions[0]}")
    output_dir.mkdir(parents=True, exist_ok=True)
    moment = f"{datetime.now(UTC):%Y-%m-%dT%H-%M-%S-%Z}"
    parts = {str(seed): part for seed, part in grades.groupby("seed", sort=True)} if by_seed else {"": grades}
    for seed, part in parts.items():
        name = f"{moment}_seed_{seed}_grading_report.json" if by_seed else f"{moment}_grading_report.json"
        (output_dir / name).write_text(summarise(reports_of(part)).to_json(), "utf-8")
        click.echo(str(output_dir / name))
    if failed:
        click.echo(f"mlebench: left out, because grading failed: {counted(failed, 'run')}", err=True)
