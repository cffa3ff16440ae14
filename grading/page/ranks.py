"""The page's section of ranks: how sure the order of the agents is on competitions like these."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from grading.page.format import DASH
from grading.page.results import Results
from grading.page.view import Series, View
from grading.statistics.counting import cells_of
from grading.statistics.differences import MIN_COMPETITIONS
from grading.statistics.profiles import distribution
from grading.statistics.ranks import ranking


@dataclass(frozen=True)
class Ranked:
    """The rank of a series with its interval, P(it is better than the next one), and its interquartile mean."""

    series: Series
    rank: str
    interval: str
    better: str
    middle: str


def ranks_section(view: View, results: Results, split: str) -> list[Ranked]:
    """A row for each agent with a rate in `split`, in the order of the page; none with too few of either."""
    cells = (
        {
            view.series_of(each.series).index: each
            for each in cells_of(results.grades, results.runs, results.counting)
            if each.split == split and each.counted
        }
        if len(results.grades)
        else {}
    )
    medals = {index: cells[index].outcomes("any_medal") for index in sorted(cells)}
    shares = {index: cells[index].percentiles(results.percentiles) for index in medals}
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
                _middle(shares[index]),
            )
        )
    return rows


def _table(own: Mapping[str, Sequence[float]], names: Sequence[str]) -> list[list[float]]:
    """A row for each of `names` with its runs, and NaN in place of those that others have more."""
    most = max(map(len, own.values()))
    runs = [list(own.get(name, ())) for name in names]
    return [each + [math.nan] * (most - len(each)) for each in runs]


def _middle(shares: Mapping[str, Sequence[float]]) -> str:
    """The interquartile mean of human percentiles, with its interval."""
    if not shares:
        return DASH
    found = distribution(_table(shares, sorted(shares)), at=())
    low, high = (100 * end for end in (found.interval.low, found.interval.high))
    return f"{100 * found.iqm:.1f}" + ("" if math.isnan(low) else f" [{low:.1f}, {high:.1f}]")
