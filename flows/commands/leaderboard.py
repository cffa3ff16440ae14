"""mlebench leaderboard."""

from __future__ import annotations

import json
from pathlib import Path

import click

from competitions import registry
from competitions.competition import Competition
from competitions.errors import UserError
from flows.commands.options import open_store, store_option


@click.command("leaderboard")
@click.argument("competition_id")
@click.option("--refresh", is_flag=True, help="Fetch the leaderboard from Kaggle, compare, and keep it in the store.")
@click.option("--json", "as_json", is_flag=True, help="The stored figures as one JSON object.")
@store_option
def command(competition_id: str, refresh: bool, as_json: bool, store: str | None, data_dir: Path | None) -> None:
    """Medal thresholds and percentiles of COMPETITION_ID.

    Grading uses these stored figures, also after --refresh, which shows how the leaderboard has moved since.
    """
    competition = registry.get(competition_id)
    if as_json and refresh:
        raise click.UsageError("--json shows the stored figures; leave out --refresh")
    facts = competition.facts
    board = facts.leaderboard
    if as_json:
        click.echo(json.dumps({"competition_id": facts.id, "metric": facts.metric.model_dump(), **board.model_dump()}))
        return
    click.echo(f"{facts.id}: {facts.metric.name}, {facts.metric.direction} is better, {board.teams} teams")
    for name in ("gold", "silver", "bronze", "median"):
        click.echo(f"  {name:7} {getattr(board, name):.5f}")
    if board.percentiles:
        click.echo("  top of the teams")
        for share, score in zip(range(0, 101, 5), board.percentiles, strict=True):
            click.echo(f"    {share:3} %  {score:.5f}")
    for note in filter(None, (None if board.human else "the leaderboard is not one of human teams", board.note)):
        click.echo(f"  note: {note}")
    if refresh:
        _refresh(competition, store, data_dir)


def _refresh(competition: Competition, store: str | None, data_dir: Path | None) -> None:
    from storage.sources.kaggle import leaderboard

    facts = competition.facts
    if facts.source != "kaggle":
        raise UserError(f"{facts.id} is not on Kaggle: there is nothing to refresh")
    place = open_store(store, data_dir)
    place.check()
    teams = leaderboard.fetch_leaderboard(facts.id)
    url = leaderboard.write_leaderboard(place, facts.id, teams)
    figures = leaderboard.compare(teams, facts)
    click.echo("  Kaggle now")
    for figure in figures:
        verdict = "same" if figure.same else f"differs from the stored {figure.stored:.5f}"
        click.echo(f"    {figure.name:7} {figure.fetched:.5f}  {verdict}")
    scoreless = sum(team.score is None for team in teams)
    if scoreless:
        click.echo(f"    {scoreless} teams have no score and do not count")
    if not leaderboard.in_order(teams, facts):
        click.echo(f"    warning: Kaggle's order is not that of '{facts.metric.direction} is better'", err=True)
    click.echo(f"  {len(teams)} teams written to {place.local(place.relative(url)) or url}")
