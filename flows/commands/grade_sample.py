"""mlebench grade-sample."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from competitions import registry
from flows.commands.options import edition_option, leaderboard_option, open_store, store_option


@click.command("grade-sample")
@click.argument("submission", type=click.Path(path_type=Path))
@click.argument("competition_id")
@edition_option
@leaderboard_option
@store_option
def command(
    submission: Path, competition_id: str, edition: Any, leaderboard: Any, store: str | None, data_dir: Path | None
) -> int:
    """Grade the CSV SUBMISSION against the answers of COMPETITION_ID and print its report as JSON.

    It is read in a process with limits on memory, time and size. Exit code 1 if there is no valid submission.
    """
    competition = registry.get(competition_id)
    from grading.workers import IsolatedGrader
    from storage.dataset import Dataset
    from storage.datasets.prepared import local_copy
    from tasks.wiring.figures import chosen_thresholds
    from tasks.wiring.stores import local_cache

    place = open_store(store, data_dir)
    thresholds = chosen_thresholds(place, competition.facts, leaderboard)
    with (
        local_copy(place, Dataset(edition, competition_id), "private", local_cache()) as prepared,
        IsolatedGrader(competition, prepared, edition, thresholds=thresholds) as grader,
    ):
        result = grader.grade(submission)
    click.echo(result.report.to_json(), nl=False)
    if result.message:
        click.echo(f"mlebench: {result.outcome}: {result.message}", err=True)
    if result.detail:
        click.echo(result.detail, err=True)
    return 0 if result.outcome == "valid" else 1
