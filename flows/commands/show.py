"""mlebench show."""

from __future__ import annotations

from pathlib import Path

import click

from common.errors import UserError
from flows.commands.ls import readable
from flows.commands.options import open_store, store_option
from grading.words import score_and_medal
from storage.runs.folders import RunFolder
from storage.store import Store

_SHOWN = (
    "agent",
    "edition",
    "backend",
    "network",
    "status",
    "message",
    "exit_code",
    "started_at",
    "finished_at",
    "duration_seconds",
    "time_limit_seconds",
)


def run_folder(store: Store, run: str) -> RunFolder:
    """The folder of a run named group/competition/seed. Raises `UserError` for anything that is no such name."""
    parts = run.strip("/").split("/")
    if len(parts) != 3 or not parts[2].isdecimal():
        raise UserError(f"run {run!r}: give GROUP/COMPETITION/SEED, as `mlebench ls GROUP` prints it")
    return RunFolder(store, parts[0], parts[1], int(parts[2]))


@click.command("show")
@click.argument("run", metavar="RUN")
@store_option
def command(run: str, store: str | None, data_dir: Path | None) -> None:
    """One run, GROUP/COMPETITION/SEED: how it ended, its grade, and the files it left with their sizes."""
    place = readable(open_store(store, data_dir))
    folder = run_folder(place, run)
    record = folder.read_run()
    if record is None:
        raise UserError(f"no finished run {run} in {place.root}; `mlebench logs {run}` shows one that is still going")
    fields = record.to_json()
    for name in _SHOWN:
        if fields.get(name) is not None:
            click.echo(f"{name:<20}{fields[name]}")
    grade = folder.read_grade()
    score, medal = score_and_medal(grade.to_row() if grade else None)
    click.echo(f"{'score':<20}{score}")
    click.echo(f"{'medal':<20}{medal}")
    if grade and grade.message:
        click.echo(f"{'grader says':<20}{grade.message}")
    if grade and grade.gold_threshold is not None:
        limits = grade.to_row()
        thresholds = (f"{name} {limits[f'{name}_threshold']:g}" for name in ("gold", "silver", "bronze", "median"))
        click.echo(f"{'thresholds':<20}{', '.join(thresholds)}")
    click.echo(f"\n{folder.url}")
    top = place.top.path(place.relative(folder.url)) + "/"
    for path, facts in sorted(place.top.fs.find(top, detail=True).items()):
        click.echo(f"{facts['size']:>12,}  {str(path).removeprefix(top)}")
