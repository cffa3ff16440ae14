"""What `mlebench show` prints of an episode: how it ended, and its actions with what the agent was told."""

from __future__ import annotations

from typing import Any

import click

from common.cleaning import clean
from common.errors import UserError, close_matches
from common.units import elapsed
from flows.commands.advice import advised
from flows.commands.answers import answer
from flows.commands.tables import show_table
from storage.store import Store
from storage.tables import read_table

_ARGUMENTS = ("command", "path", "predictions")
_MOST_CHARACTERS = 60
_SHOWN = (
    "competition_id",
    "edition",
    "division",
    "backend",
    "seed",
    "started_at",
    "duration_seconds",
    "end",
    "reward",
    "valid",
    "score",
    "part",
    "medal",
    "human_percentile",
    "improvement",
)


def show_episode(store: Store, name: str, episode_id: str) -> bool:
    """Print an episode of the training `name`; returns whether there is such a training.

    Raises `UserError` if it has no such episode.
    """
    table = read_table(store, "episodes", [name])
    if table.empty:
        return False
    rows = table[table["episode_id"] == episode_id].to_dict("records")
    if not rows:
        listing = advised(f"mlebench ls --episodes {name}", store)
        close = close_matches(episode_id, table["episode_id"])
        raise UserError(f"no episode {name}/{episode_id} in {store.root}; `{listing}` lists them.{close}")
    row, url = rows[-1], store.url("episodes", name, f"{episode_id}.json")
    trajectory: dict[str, Any] = store.read_json(url) or {}
    if answer({"episode": row, "trajectory": trajectory, "url": url}):
        return True
    for field in _SHOWN:
        value = row[field]
        if value is not None and value == value:  # not NaN
            text = elapsed(value) if field == "duration_seconds" else clean(f"{value}")
            click.echo(f"{field.removesuffix('_seconds'):<20}{text}")
    lines = [_line(step) for step in trajectory.get("steps", ()) if step.get("tool_calls")]
    if lines:
        click.echo()
        show_table(("STEP", "ACTION", "OF", "TOLD"), lines, right={"STEP"})
    click.echo(f"\n{store.shown(url)}")
    return True


def _line(step: dict[str, Any]) -> tuple[str, str, str, str]:
    call, told = step["tool_calls"][0], step["observation"]["results"][0]["content"]
    what = next((str(call["arguments"][name]) for name in _ARGUMENTS if name in call["arguments"]), "-")
    return str(step["step_id"] - 1), call["function_name"], _short(what), _short(told)


def _short(text: str) -> str:
    """The first line, cleaned and cut."""
    line = clean(text.strip().partition("\n")[0])
    return line if len(line) <= _MOST_CHARACTERS else f"{line[:_MOST_CHARACTERS]}..."
