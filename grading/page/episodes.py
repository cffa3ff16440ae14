"""The page about episodes of a training: the learning curve of each competition, and a list with trajectories."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import pandas as pd
from markupsafe import Markup

from common.cleaning import clean
from grading.page.charts import Line, draw, scale
from grading.page.render import environment, style_and_script
from grading.page.view import Series
from grading.statistics.rewards import Batch, batches, rewarded

_MOST_LISTED = 2000
"""Episodes of the list; the last ones."""


@dataclass(frozen=True)
class Curve:
    """The learning curve of a competition."""

    series: Series
    batches: list[Batch]


def render_episodes(
    episodes: pd.DataFrame, name: str, trajectories: Mapping[str, str], generated_at: datetime | None = None
) -> str:
    """The page as one HTML document, which makes no network requests.

    Args:
        episodes: rows of the table of episodes.
        name: the name of the training.
        trajectories: the address of the trajectory of an episode, by its id; those without one have no link.
        generated_at: now by default.
    """
    numbered = rewarded(episodes)
    curves = _curves(numbered)
    numbers = dict(zip(numbered["episode_id"], numbered["number"], strict=True))
    in_order = episodes.sort_values(["started_at", "episode_id"], kind="stable")
    listed = [_plain(row) for row in in_order.tail(_MOST_LISTED).to_dict("records")]
    return (
        environment()
        .get_template("episodes.html")
        .render(
            title=f"Episodes of {name}",
            generated=(generated_at or datetime.now(UTC)).astimezone(UTC),
            **style_and_script(),
            chart=_chart(curves),
            curves=curves,
            count=len(episodes),
            rewarded=len(numbered),
            first=in_order["started_at"].iloc[0],
            last=in_order["started_at"].iloc[-1],
            test_scores=bool(episodes["test_scores"].eq(True).any()),
            evaluated=bool((episodes["division"] == "eval").any()),
            episodes=[(numbers.get(row["episode_id"]), row, trajectories.get(row["episode_id"])) for row in listed],
        )
    )


def _curves(numbered: pd.DataFrame) -> list[Curve]:
    curves = []
    for index, competition_id in enumerate(sorted(numbered["competition_id"].unique())):
        label = clean(competition_id)
        curves.append(Curve(Series(index, "", label, "", label, ()), batches(numbered, competition_id)))
    return curves


def _chart(curves: list[Curve]) -> Markup | None:
    """None if no competition has two batches."""
    lines = [
        Line(
            curve.series,
            [(batch.middle, batch.reward) for batch in curve.batches],
            [(batch.middle, batch.interval.low, batch.interval.high) for batch in curve.batches],
        )
        for curve in curves
    ]
    if all(len(line.points) < 2 for line in lines):
        return None
    x = scale(max(batch.last for curve in curves for batch in curve.batches), "{:,.0f}".format)
    y = scale(max(high for line in lines for _, _, high in line.band), "{:g}".format, 1.0)
    return draw(lines, x, y, "mean reward by the number of episodes", "learning-curve")


def _plain(row: Mapping[Any, Any]) -> dict[str, Any]:
    """A row with cleaned text, and with None for missing values."""

    def value(cell: Any) -> Any:
        return None if pd.isna(cell) else clean(cell) if isinstance(cell, str) else cell

    return {str(name): value(cell) for name, cell in row.items()}
