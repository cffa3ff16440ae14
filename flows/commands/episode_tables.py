"""What `mlebench ls --episodes` shows: names of trainings, their episodes, and rewards in the order of time."""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from common.cleaning import clean
from common.errors import UserError
from common.units import elapsed
from flows.commands.answers import answer
from flows.commands.tables import show_table
from storage.store import Store
from storage.tables import read_table

if TYPE_CHECKING:
    import pandas as pd

_SHOWN = {
    "episode_id": "EPISODE",
    "competition_id": "COMPETITION",
    "division": "DIVISION",
    "steps": "STEPS",
    "end": "END",
    "reward": "REWARD",
    "duration_seconds": "TIME",
}
_MOST_NAMED = 2
"""Competitions of a training that are named in a line."""
_FORMS = {"reward": "{:.3f}".format, "duration_seconds": elapsed}


def show_episodes(store: Store, name: str | None, report: Path | None = None) -> None:
    """Print the names under which episodes are recorded, or the episodes of one name, and write their report.

    The second table has mean rewards of batches in the order of time; episodes without a reward, which were abandoned,
    are left out of it. Raises `UserError` without any episode.
    """
    episodes = read_table(store, "episodes", None if name is None else [name])
    if episodes.empty:
        named = "" if name is None else f" of {name!r}"
        raise UserError(
            f"no episodes{named} in {store.root}; mlebench serve records them under its --name, and "
            "`mlebench ls --episodes` lists these names"
        )
    episodes = episodes.sort_values(["started_at", "episode_id"], kind="stable")
    if name is None:
        _show_names(store, episodes)
        return
    if report is not None:
        _write_report(store, name, episodes, report)
    if answer(episodes):
        return
    show_table(list(_SHOWN.values()), [_cells(row) for row in episodes.to_dict("records")], right={"STEPS", "REWARD"})
    if len(rows := _batches(episodes)) > 1:
        click.echo()
        left_out = int(episodes["reward"].isna().sum())
        without = f" ({left_out} without a reward are left out)" if left_out else ""
        show_table(("EPISODES", "MEAN REWARD", "VALID"), rows, f"Rewards in the order of time{without}:")
    if report is not None:
        click.echo(f"\n{report}")


def _show_names(store: Store, episodes: pd.DataFrame) -> None:
    rows = [
        {
            "name": name,
            "episodes": len(rows),
            "competitions": sorted(rows["competition_id"].unique()),
            "mean_reward": rows["reward"].mean(),
            "last_started": rows["started_at"].max(),
        }
        for name, rows in episodes.groupby("run_group")
    ]
    if answer(rows):
        return
    lines = [
        (
            row["name"],
            str(row["episodes"]),
            _listed(row["competitions"]),
            _cell("reward", row["mean_reward"]),
            f"{row['last_started']:%Y-%m-%d %H:%M}",
        )
        for row in rows
    ]
    show_table(("NAME", "EPISODES", "COMPETITIONS", "MEAN REWARD", "LAST STARTED (UTC)"), lines)
    click.echo(f"in {store.root}")


def _listed(competitions: list[str]) -> str:
    more = len(competitions) - _MOST_NAMED
    return clean(", ".join(competitions[:_MOST_NAMED])) + (f" and {more} more" if more > 0 else "")


def _batches(episodes: pd.DataFrame) -> list[tuple[str, str, str]]:
    from grading.statistics.rewards import batches, rewarded

    return [
        (f"{batch.first}-{batch.last}", f"{batch.reward:.3f}", f"{batch.valid:.0%}")
        for batch in batches(rewarded(episodes))
    ]


def _write_report(store: Store, name: str, episodes: pd.DataFrame, path: Path) -> None:
    """Write the page. Its links lead to the trajectories in a local store."""
    from grading.page.episodes import render_episodes

    folder = store.local("episodes", name)
    files = {id: folder.absolute() / f"{id}.json" for id in episodes["episode_id"]} if folder is not None else {}
    page = render_episodes(episodes, name, {id: file.as_uri() for id, file in files.items()})
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(page, "utf-8")
    except OSError as error:
        raise UserError(f"{path} cannot be written ({error.strerror}): name another file with --report") from error


def _cells(row: dict[Any, Any]) -> list[str]:
    return [_cell(name, row[name]) for name in _SHOWN]


def _cell(name: str, value: Any) -> str:
    missing = value is None or (isinstance(value, float) and math.isnan(value))
    return "-" if missing else clean(_FORMS.get(name, str)(value))
