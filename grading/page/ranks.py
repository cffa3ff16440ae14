"""The page's sections of ranks, and of how the human percentiles of runs are distributed."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from markupsafe import Markup

from grading.page.charts import Axis, Line, draw, scale
from grading.page.format import DASH
from grading.page.results import Results
from grading.page.view import Series, View
from grading.statistics.counting import Cells, cells_of
from grading.statistics.differences import MIN_COMPETITIONS
from grading.statistics.profiles import PERCENTILES, Distribution, distribution
from grading.statistics.ranks import ranking


@dataclass(frozen=True)
class Ranked:
    """The rank of a series with its interval, P(it is better than the next one), and its interquartile mean."""

    series: Series
    rank: str
    interval: str
    better: str
    middle: str


def distributions(view: View, results: Results, split: str) -> dict[int, Distribution]:
    """How the human percentiles of runs in `split` are distributed, as fractions, by index of a series."""
    found = {index: cells.percentiles(results.percentiles) for index, cells in _cells(view, results, split).items()}
    at = [each / 100 for each in PERCENTILES]
    return {index: distribution(_table(shares, sorted(shares)), at) for index, shares in found.items() if shares}


def profiles(view: View, spread: Mapping[int, Distribution]) -> Markup | None:
    """The chart of performance profiles; None with fewer than `MIN_COMPETITIONS` competitions."""
    lines = [
        Line(
            view.series[index],
            list(zip(found.profile.at, found.profile.share, strict=True)),
            [
                band
                for band in zip(found.profile.at, found.profile.low, found.profile.high, strict=True)
                if not math.isnan(band[1])
            ],
        )
        for index, found in spread.items()
        if found.competitions >= MIN_COMPETITIONS
    ]
    x = Axis([(each / 100, str(each)) for each in range(0, 101, 20)], 0.0, 1.0)
    y = scale(1.0, lambda share: f"{100 * share:g} %")
    return draw(lines, x, y, "share of runs above each human percentile", "profile-lines") if lines else None


def ranks_section(view: View, results: Results, split: str, spread: Mapping[int, Distribution]) -> list[Ranked]:
    """A row for each agent with a rate in `split`, in the order of the page; none with too few of either.

    `spread` are the `distributions` of the split.
    """
    medals = {index: cells.outcomes("any_medal") for index, cells in _cells(view, results, split).items()}
    names = sorted({name for own in medals.values() for name in own})
    if len(medals) < 2 or len(names) < MIN_COMPETITIONS:
        return []
    found = ranking({str(index): _table(own, names) for index, own in medals.items()})
    rows = []
    for one, after in zip(found.ranks, [*(rank.agent for rank in found.ranks[1:]), ""], strict=True):
        chance = found.better.get((one.agent, after), math.nan)
        index = int(one.agent)
        rows.append(
            Ranked(
                view.series[index],
                DASH if one.rank is None else str(one.rank),
                f"{one.low} to {one.high}",
                DASH if math.isnan(chance) else f"{chance:.2f}",
                _middle(spread.get(index)),
            )
        )
    return rows


def _cells(view: View, results: Results, split: str) -> dict[int, Cells]:
    """The cells of each series that has any in `split`."""
    if results.grades.empty:
        return {}
    every = cells_of(results.grades, results.runs, results.counting)
    found = {view.series_of(each.series).index: each for each in every if each.split == split and each.counted}
    return dict(sorted(found.items()))


def _table(own: Mapping[str, Sequence[float]], names: Sequence[str]) -> list[list[float]]:
    """A row for each of `names` with its runs, and NaN in place of those that others have more."""
    most = max(map(len, own.values()))
    runs = [list(own.get(name, ())) for name in names]
    return [each + [math.nan] * (most - len(each)) for each in runs]


def _middle(found: Distribution | None) -> str:
    """The interquartile mean of human percentiles, with its interval."""
    if found is None:
        return DASH
    low, high = (100 * end for end in (found.interval.low, found.interval.high))
    return f"{100 * found.iqm:.1f}" + ("" if math.isnan(low) else f" [{low:.1f}, {high:.1f}]")
