"""mlebench leaderboard."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from common import plain_json
from common.errors import UserError
from common.units import counted
from competitions import registry
from competitions.competition import Competition
from flows.commands.completion import COMPETITIONS
from flows.commands.options import StoreOptions, takes

if TYPE_CHECKING:
    from grading.leaderboards import Figure


@click.command("leaderboard")
@click.argument("competition_id", shell_complete=COMPETITIONS)
@click.option(
    "--refresh",
    is_flag=True,
    help="Fetch the leaderboard from Kaggle, compare it with the stored one, and write it to the store.",
)
@click.option("--json", "as_json", is_flag=True, help="Print the stored figures as one JSON object.")
@takes(storage=StoreOptions)
def command(competition_id: str, refresh: bool, as_json: bool, storage: StoreOptions) -> None:
    """Show medal thresholds and percentiles of COMPETITION_ID.

    Grading uses these stored figures by default. --refresh shows how Kaggle's leaderboard has changed since, and writes
    it to the store, where the commands that grade use it with --leaderboard refreshed.
    """
    competition = registry.get(competition_id)
    if as_json and refresh:
        raise click.UsageError("--json prints the stored figures; leave out --refresh")
    facts = competition.facts
    board = facts.leaderboard
    if as_json:
        click.echo(
            plain_json.dumps({"competition_id": facts.id, "metric": facts.metric.model_dump(), **board.model_dump()})
        )
        return
    click.echo(f"{facts.id}: {facts.metric.name}, {facts.metric.direction} is better, {board.teams} teams")
    for name in ("gold", "silver", "bronze", "median"):
        click.echo(f"  {name:7} {getattr(board, name):.5f}")
    if board.percentiles:
        click.echo("  top of the teams")
        for share, score in zip(range(0, 101, 5), board.percentiles, strict=True):
            click.echo(f"    {share:3} %  {score:.5f}")
    for note in filter(None, (None if board.human else "the leaderboard does not consist of human teams", board.note)):
        click.echo(f"  note: {note}")
    if refresh:
        refresh_leaderboard(competition, storage)


def refresh_leaderboard(competition: Competition, storage: StoreOptions) -> None:
    """Fetch the leaderboard from Kaggle, print what differs from the stored one, and write it to the store.

    Raises `UserError` if the competition is not on Kaggle, or if Kaggle does not give the leaderboard.
    """
    from common.settings import get_settings
    from grading.leaderboards import compare, compare_percentiles, in_order
    from storage.sources.kaggle import leaderboard

    facts = competition.facts
    if facts.source != "kaggle":
        raise UserError(f"{facts.id} is not on Kaggle: there is nothing to refresh")
    store = storage.open()
    store.require_usable()
    teams = leaderboard.fetch_leaderboard(facts.id, get_settings().network_timeout)
    scores = [team.score for team in teams if team.score is not None]
    figures, percentiles = compare(scores, facts), compare_percentiles(scores, facts)
    url = leaderboard.write_leaderboard(store, facts.id, teams)
    click.echo("  Kaggle now")
    for figure in figures:
        _show(figure, f"{figure.name:7}")
    if percentiles:
        same = sum(figure.same for figure in percentiles)
        click.echo(f"  top of the teams now: {same} of {len(percentiles)} the same to within two places")
        for figure in percentiles:
            _show(figure, f"{figure.name:>5}")
    scoreless = len(teams) - len(scores)
    if scoreless:
        click.echo(f"    {counted(scoreless, 'team')} without a score, not counted")
    if not in_order(scores, facts):
        click.echo(f"    warning: Kaggle's ranking contradicts '{facts.metric.direction} is better'", err=True)
    click.echo(f"  {counted(len(teams), 'team')} written to {store.shown(url)}")


def _show(figure: Figure, label: str) -> None:
    is_count = figure.name == "teams"
    fetched, stored = (f"{value:.0f}" if is_count else f"{value:.5f}" for value in (figure.fetched, figure.stored))
    click.echo(f"    {label} {fetched:>11}  {'same' if figure.same else f'differs from the stored {stored}'}")
