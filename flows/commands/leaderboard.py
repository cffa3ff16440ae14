"""mlebench leaderboard."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import click

from common.errors import UsageError, UserError
from common.units import counted
from competitions import registry
from competitions.competition import Competition
from flows.commands.answers import answer, say, takes_json
from flows.commands.failures import Failures
from flows.commands.options import IDS, Selection, StoreOptions, takes
from storage.store import Store

if TYPE_CHECKING:
    from grading.leaderboards import Figure

_NOT_ON_KAGGLE = "it is not on Kaggle, so there is nothing to refresh"


@click.command("leaderboard")
@IDS
@takes(selection=Selection, storage=StoreOptions)
@click.option(
    "--refresh",
    is_flag=True,
    help="Fetch the leaderboards from Kaggle, compare them with the stored ones, and write them to the store.",
)
@click.option("--missing", is_flag=True, help="With --refresh: only those that the store does not have yet.")
@click.option(
    "--force",
    is_flag=True,
    hidden=True,
    help="Accepted for compatibility with the published tool: overrides --missing.",
)
@takes_json
def command(
    ids: tuple[str, ...], selection: Selection, storage: StoreOptions, refresh: bool, missing: bool, force: bool
) -> int:
    """Show medal thresholds and percentiles of competitions.

    Grading uses these stored figures by default. --refresh shows how Kaggle's leaderboards have changed since, and
    writes them to the store, where the commands that grade use them with --leaderboard refreshed. A failure does not
    stop the rest. Exit code 1 if any failed.
    """
    competitions = [registry.get(name) for name in selection.with_ids(ids).ids()]
    if missing and not refresh:
        raise click.UsageError("--missing is for --refresh only")
    if not refresh:
        for competition in competitions:
            _show_stored(competition)
        return 0
    if not any(competition.facts.source == "kaggle" for competition in competitions):
        raise UsageError(f"{competitions[0].id}: {_NOT_ON_KAGGLE}")
    store = storage.open_usable(new=True)
    if missing and not force:
        from storage.sources.kaggle.leaderboard import read_leaderboard

        new = [each for each in competitions if read_leaderboard(store, each.id) is None]
        if len(new) < len(competitions):
            say(f"{len(competitions) - len(new)} reused: fetched already; without --missing, all are fetched")
        competitions = new
    return fetch_each(competitions, store)


def fetch_each(competitions: Sequence[Competition], store: Store) -> int:
    """Fetch leaderboards one after the other, and show what has changed; returns the exit code."""
    failures = Failures()
    for competition in competitions:
        _show_stored(competition, as_answer=False)
        try:
            if competition.facts.source != "kaggle":
                raise UserError(_NOT_ON_KAGGLE)
            _refresh(competition, store)
        except Exception as error:
            failures.tell(competition.id, error)
    return 1 if failures.count else 0


def _show_stored(competition: Competition, as_answer: bool = True) -> None:
    facts = competition.facts
    board = facts.leaderboard
    stored = {"competition_id": facts.id, "metric": facts.metric.model_dump(), **board.model_dump()}
    if as_answer and answer(stored):
        return
    say(f"{facts.id}: {facts.metric.name}, {facts.metric.direction} is better, {board.teams} teams")
    for name in ("gold", "silver", "bronze", "median"):
        say(f"  {name:7} {getattr(board, name):.5f}")
    if board.percentiles:
        say("  percentiles of the teams (0 % is the best)")
        for share, score in zip(range(0, 101, 5), board.percentiles, strict=True):
            say(f"    {share:3} %  {score:.5f}")
    for note in filter(None, (None if board.human else "the leaderboard does not consist of human teams", board.note)):
        say(f"  note: {note}")


def _refresh(competition: Competition, store: Store) -> None:
    """Fetch the leaderboard from Kaggle, print what differs from the stored one, and write it to the store.

    Raises `UserError` if Kaggle does not give the leaderboard.
    """
    from common.settings import get_settings
    from grading.leaderboards import compare, compare_percentiles, in_order
    from storage.sources.kaggle import leaderboard

    facts = competition.facts
    teams = leaderboard.fetch_leaderboard(facts.id, get_settings().network_timeout)
    scores = [team.score for team in teams if team.score is not None]
    figures, percentiles = compare(scores, facts), compare_percentiles(scores, facts)
    url = store.shown(leaderboard.write_leaderboard(store, facts.id, teams))
    if not in_order(scores, facts):
        click.echo(f"    warning: Kaggle's ranking contradicts '{facts.metric.direction} is better'", err=True)
    found: dict[str, Any] = {"kind": "leaderboard", "competition_id": facts.id, "teams": len(teams), "written": url}
    if answer({**found, "figures": figures, "percentiles": percentiles}):
        return
    say("  Kaggle now")
    for figure in figures:
        _show(figure, f"{figure.name:7}")
    if percentiles:
        same = sum(figure.same for figure in percentiles)
        say(f"  percentiles now: {same} of {len(percentiles)} as stored, to within two places")
        for figure in percentiles:
            _show(figure, f"{figure.name:>5}")
    if scoreless := len(teams) - len(scores):
        say(f"    {counted(scoreless, 'team')} without a score, not counted")
    say(f"  {counted(len(teams), 'team')} written to {url}")


def _show(figure: Figure, label: str) -> None:
    is_count = figure.name == "teams"
    fetched, stored = (f"{value:.0f}" if is_count else f"{value:.5f}" for value in (figure.fetched, figure.stored))
    say(f"    {label} {fetched:>11}  {'same' if figure.same else f'differs from the stored {stored}'}")
