"""Grades the submission of a Harbor task in the container of its verifier: `python -m tasks.export.verifier ID`."""

from __future__ import annotations

import math
from pathlib import Path

import click

from common import plain_json
from competitions import registry
from competitions.editions import EDITIONS, Edition
from competitions.facts import CompetitionFacts
from grading.medals import Thresholds, dense_reward, human_percentile
from grading.report import CompetitionReport


@click.command()
@click.argument("competition_id")
@click.option("--edition", type=click.Choice(EDITIONS), required=True)
@click.option("--answers", type=click.Path(path_type=Path), required=True, help="Directory that contains private/.")
@click.option("--submission", type=click.Path(path_type=Path), required=True)
@click.option("--rewards", type=click.Path(path_type=Path), required=True, help="File to write.")
def main(competition_id: str, edition: Edition, answers: Path, submission: Path, rewards: Path) -> None:
    """Grade a submission in a process with limits, and write its rewards."""
    from grading.workers import GradingPool

    competition = registry.get(competition_id)
    with GradingPool(competition, answers, edition, thresholds=Thresholds.of(competition.facts)) as grader:
        result = grader.grade(submission)
    score_text = f"score {result.report.score}" if result.outcome == "valid" else None
    click.echo(f"{result.outcome}: {'. '.join(filter(None, (score_text, result.message)))}")
    if result.outcome == "failed":
        raise click.ClickException(f"grading failed, which is no failure of the agent\n{result.detail or ''}")
    values = rewards_of(result.report, competition.facts)
    rewards.write_text(plain_json.dumps(values) + "\n", "utf-8")


def rewards_of(report: CompetitionReport, facts: CompetitionFacts) -> dict[str, float]:
    """The rewards of a graded submission; Harbor takes finite numbers only.

    `reward` is 1 for any medal, `dense_reward` is the share of teams that the score beats. `human_percentile` is the
    same in percent where the leaderboard is known, and left out elsewhere. `score` is left out if there is none.
    """
    names = ("any_medal", "gold_medal", "silver_medal", "bronze_medal", "above_median", "valid_submission")
    values = {"reward": float(report.any_medal), **{name: float(getattr(report, name)) for name in names}}
    percentiles = facts.leaderboard.percentiles
    values["dense_reward"] = dense_reward(report.score, Thresholds.of(facts), percentiles)
    scored = report.score is not None and math.isfinite(report.score)
    if percentiles is not None:
        beaten = human_percentile(report.score, percentiles) if scored else 0.0
        values |= {} if math.isnan(beaten) else {"human_percentile": beaten}
    if report.score is not None and scored:
        values["score"] = report.score
    return values


if __name__ == "__main__":
    main()
