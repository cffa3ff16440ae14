"""The page's section on split noise: how much scores and medals depend on the choice of test rows."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from common.cleaning import clean
from grading.page.format import DASH, number
from grading.page.results import Results
from grading.page.view import Result, Series, View
from grading.statistics.split_noise import LUCK, medals_by_luck

MAX_ROWS = 100
"""Runs that the page lists."""


@dataclass(frozen=True)
class Noise:
    """Totals by series, the runs whose medal is luck, and competitions that cannot be measured with the reason."""

    totals: list[tuple[Series, Mapping[Any, Any]]]
    luck: list[tuple[Series, Mapping[Any, Any]]]
    lucky: int
    """Number of such runs, of which the page shows those nearest to even odds."""
    unknown: list[tuple[str, str]]
    by_run: Mapping[tuple[str, str, str], Mapping[Any, Any]]

    def error(self, result: Result) -> str:
        """The standard error of a result's score, or a dash."""
        row = self._row(result)
        return DASH if row is None else self.rounded(row)

    def rounded(self, row: Mapping[Any, Any]) -> str:
        """The standard error of a row with two significant digits, and at most five decimals."""
        return number(float(f"{row['standard_error']:.2g}"))

    def chance(self, result: Result) -> str:
        """The probability of a medal on another test set, or a dash."""
        row = self._row(result)
        return DASH if row is None else f"{row['any_medal_probability']:.2f}"

    def _row(self, result: Result) -> Mapping[Any, Any] | None:
        row = self.by_run.get((result.series.run_group, result.run_id, result.series.edition))
        return None if row is None or math.isnan(row["standard_error"]) else row


def noise_section(view: View, results: Results) -> Noise | None:
    """The section; None if nothing was measured."""
    noise = results.noise
    if noise is None or noise.empty:
        return None
    # Rows of runs that were regraded away, or of series that are not shown, are left out.
    known = {(s.run_group, s.agent, s.edition) for s in view.series}
    keys = zip(noise["run_group"].map(clean), noise["agent"].map(clean), noise["edition"].map(clean), strict=True)
    noise = noise[[key in known for key in keys]]
    if noise.empty:
        return None
    rows: list[dict[str, Any]] = [
        {str(name): clean(cell) if isinstance(cell, str) else cell for name, cell in row.items()}
        for row in noise.to_dict("records")
    ]
    luck = [row for row in rows if LUCK[0] < row["any_medal_probability"] < LUCK[1]]
    shown = sorted(luck, key=lambda row: abs(row["any_medal_probability"] - 0.5))[:MAX_ROWS]
    shown.sort(key=lambda row: (row["competition_id"], row["run_group"], row["agent"], row["seed"]))
    unknown = sorted({(row["competition_id"], row["message"]) for row in rows if row["message"]})
    return Noise(
        view.in_order(medals_by_luck(noise).to_dict("records")),
        [(view.series_of(row), row) for row in shown],
        len(luck),
        unknown,
        {(row["run_group"], row["run_id"], row["edition"]): row for row in rows},
    )
