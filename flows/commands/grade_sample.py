"""mlebench grade-sample."""

from __future__ import annotations

import json
from pathlib import Path

import click

from competitions import registry
from flows.commands.answers import answer, takes_json
from flows.commands.completion import COMPETITIONS
from flows.commands.options import GradingOptions, StoreOptions, takes
from flows.commands.submissions import followed


@click.command("grade-sample")
@click.argument("submission", type=click.Path(path_type=Path))
@click.argument("competition_id", shell_complete=COMPETITIONS)
@takes(grading=GradingOptions, storage=StoreOptions)
@takes_json
def command(submission: Path, competition_id: str, grading: GradingOptions, storage: StoreOptions) -> int:
    """Grade the CSV SUBMISSION against the answers of COMPETITION_ID and print its report as JSON.

    With --json, this is one line. The submission is read in a separate process with limits on memory, time and size. An
    invalid submission is a result, too. Exit code 1 if there is no submission, or if it could not be graded.
    """
    competition = registry.get(competition_id)
    from storage.dataset import Dataset
    from storage.datasets.current import require
    from storage.datasets.local_copy import local_copy
    from tasks.wiring.context import local_cache
    from tasks.wiring.grades import chosen_thresholds, process_graders

    store = storage.open(new=True)
    thresholds = chosen_thresholds(store, competition.facts, grading.leaderboard)
    dataset = require(store, Dataset(grading.edition, competition_id))
    with (
        local_copy(store, dataset, "private", local_cache()) as prepared,
        process_graders().grader(competition, prepared, grading.edition, dataset.key or "", thresholds) as grader,
    ):
        result = grader.grade(followed(submission, store))
    if not answer(json.loads(result.report.to_json())):
        click.echo(result.report.to_json(), nl=False)
    if result.message:
        click.echo(f"mlebench: {result.outcome}: {result.message}", err=True)
    if result.detail:
        click.echo(result.detail, err=True)
    return 0 if result.outcome in ("valid", "invalid") else 1
