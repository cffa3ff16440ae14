"""The tables of `mlebench ls --episodes`: names of trainings, their episodes, and rewards in the order of time."""

from __future__ import annotations

import math
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

_BATCH = 10
_MOST_BATCHES = 20
_SHOWN = {
    "episode_id": "EPISODE",
    "competition_id": "COMPETITION",
    "division": "DIVISION",
    "steps": "STEPS",
    "end": "END",
    "reward": "REWARD",
    "duration_seconds": "TIME",
}
_FORMS = {"reward": "{:.3f}".format, "duration_seconds": elapsed}


def show_episodes(store: Store, name: str | None) -> None:
    """Print the names under which episodes are recorded, or the episodes of one name. Raises `UserError` without any.

    The second table has mean rewards of batches in the order of time; episodes without a reward, which were abandoned,
    are left out of it.
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
    if answer(episodes):
        return
    show_table(list(_SHOWN.values()), [_cells(row) for row in episodes.to_dict("records")], right={"STEPS", "REWARD"})
    rewarded = episodes[episodes["reward"].notna()]
    if len(rewarded) > _BATCH:
        click.echo()
        show_table(("EPISODES", "MEAN REWARD", "VALID"), _batches(rewarded), "Rewards in the order of time:")


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
            clean(", ".join(row["competitions"])),
            _cell("reward", row["mean_reward"]),
            f"{row['last_started']:%Y-%m-%d %H:%M}",
        )
        for row in rows
    ]
    show_table(("NAME", "EPISODES", "COMPETITIONS", "MEAN REWARD", "LAST STARTED (UTC)"), lines)
    click.echo(f"in {store.root}")


def _batches(rewarded: pd.DataFrame) -> list[tuple[str, str, str]]:
    """Mean rewards of ten episodes each, or of more if there would be too many batches."""
    size = max(_BATCH, math.ceil(len(rewarded) / _MOST_BATCHES))
    batches = [rewarded.iloc[start : start + size] for start in range(0, len(rewarded), size)]
    return [
        (
            f"{number * size + 1}-{number * size + len(batch)}",
            f"{batch['reward'].mean():.3f}",
            f"{batch['valid'].astype(float).mean():.0%}",
        )
        for number, batch in enumerate(batches)
    ]


def _cells(row: dict[Any, Any]) -> list[str]:
    return [_cell(name, row[name]) for name in _SHOWN]


def _cell(name: str, value: Any) -> str:
    missing = value is None or (isinstance(value, float) and math.isnan(value))
    return "-" if missing else clean(_FORMS.get(name, str)(value))
