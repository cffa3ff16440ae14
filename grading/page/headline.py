"""The first figure: agents from best to worst, each a dot with its interval; what published agents and people reach.

Every row has its place in each split, so that the reader chooses a split and the page sorts by it.
"""

from __future__ import annotations

import csv
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from importlib import resources
from typing import Any

from markupsafe import Markup

from common import plain_json
from common.units import counted
from competitions.leaderboard import medal_places
from grading.page.attempts import money
from grading.page.format import duration, percent
from grading.page.order import first_split, full_size, splits_of
from grading.page.view import Series, View
from grading.statistics.seeds import mean
from grading.statistics.series import BENCHMARK_SPLITS

PUBLISHED_ON = "2026-02-26"
"""The date of the published leaderboard in leaderboard.csv."""
PUBLISHED_AT = "github.com/openai/mle-bench, README.md"
COLUMNS = ["agent", "split", "competitions", "seeds", "ungraded", "mean", "sem"]
COLUMNS += ["ci_low", "ci_high", "both_low", "both_high"]
"""What is copied of a row: ends of the interval over runs, and of that over competitions, too."""
_RULE = Markup('<line class="{0}" x1="{1:.1f}%" x2="{1:.1f}%" y1="0" y2="100%"/>')
_GRID = Markup('<g id="grid-{}" class="behind">{}{}</g>')
_USED = Markup('<use href="#grid-{}"/>')
_SPAN = Markup('<line class="{} l{}" x1="{:.2f}%" x2="{:.2f}%" y1="50%" y2="50%"/>')
_DOT = Markup('<svg x="{:.2f}%" y="50%" class="at"><use href="#{}" class="s{}"/></svg>')


@dataclass(frozen=True)
class Estimate:
    """A rate in one split, as a fraction; `near` is its interval for other runs, `wide` for other competitions, too.

    Ends are NaN where unknown. The rate rests on `competitions` of the `full` split, of which `missing` runs are not
    graded; 0 of published rates.
    """

    mean: float
    near: tuple[float, float] = (math.nan, math.nan)
    wide: tuple[float, float] = (math.nan, math.nan)
    sem: float = math.nan
    competitions: int = 0
    full: int = 0
    seeds: int = 0
    missing: int = 0
    percentile: float | None = None
    letters: str = ""

    @property
    def partial(self) -> bool:
        """Whether the rate covers only part of its split."""
        return self.competitions < self.full

    @property
    def of(self) -> str:
        """What the rate rests on, in words."""
        part = f"{self.competitions} of {self.full}" if self.partial else str(self.competitions)
        missing = f", {self.missing} ungraded" if self.missing else ""
        return f"{part} competition{'s' * (self.full != 1)} × {counted(self.seeds, 'seed')}{missing}"


@dataclass(frozen=True)
class Row:
    """An agent, or a published one, which has no series: its rates by split, and a line of facts."""

    label: str
    series: Series | None
    estimates: Mapping[str, Estimate]
    facts: str = ""

    def numbers(self, splits: Sequence[str]) -> str:
        """The rows to copy, one for each split, with the cells of `COLUMNS`, as JSON; fractions with four decimals."""
        rows = []
        for split in splits:
            if (one := self.estimates.get(split)) is not None:
                of = (one.competitions, one.seeds, one.missing) if self.series else ("", "", "")
                rates = (one.mean, one.sem, *one.near, *one.wide)
                rows.append([self.label, split, *of, *("" if math.isnan(each) else round(each, 4) for each in rates)])
        return plain_json.dumps(rows)


@dataclass(frozen=True)
class Headline:
    """Rows from the best in `chosen` to the worst. `top` is the fraction at the right end of the axis.

    `human` is the share of human teams with a medal by split; `models` are splits that trained models take part in.
    """

    rows: list[Row]
    splits: list[str]
    chosen: str
    top: float
    human: dict[str, float]
    models: set[str]
    published: list[Row] = field(default_factory=list)

    columns = plain_json.dumps(COLUMNS)

    @property
    def partial(self) -> bool:
        """Whether a figure covers only part of its split."""
        return any(one.partial for row in self.rows for one in row.estimates.values())

    @property
    def lettered(self) -> bool:
        """Whether anything is known of which agents can be told apart."""
        return any(one.letters for row in self.rows for one in row.estimates.values())

    @property
    def ticks(self) -> list[tuple[float, str]]:
        """(position in percent, text) along the axis."""
        step = next(step for step in (0.02, 0.05, 0.1, 0.2, 0.25) if self.top / step <= 5.01)
        return [
            (100 * n * step / self.top, f"{100 * n * step:g}") for n in range(math.floor(self.top / step + 0.01) + 1)
        ]

    def grid(self) -> Markup:
        """What lies behind the rows of a split, as elements to use: the lines of the axis, and what people reach."""
        lines = Markup("").join(_RULE.format("rule", at) for at, _ in self.ticks)
        people = {split: 100 * share / self.top for split, share in self.human.items() if share <= self.top}
        humans = {split: _RULE.format("human", people[split]) if split in people else "" for split in self.splits}
        grids = (_GRID.format(place, lines, human) for place, human in enumerate(humans.values()))
        return Markup("").join(grids)

    def drawn(self, row: Row, split: str) -> Markup:
        """The picture of a row: its dot, a thick line for `near` and a thin one for `wide`."""
        one = row.estimates.get(split)
        parts = [_USED.format(self.splits.index(split))]
        if one is not None and not math.isnan(one.mean):
            colour = "ref" if row.series is None else row.series.shape
            for name, (low, high) in (("wide", one.wide), ("near", one.near)):
                if not math.isnan(low):
                    ends = (100 * min(max(end, 0.0), self.top) / self.top for end in (low, high))
                    parts.append(_SPAN.format(name, colour, *ends))
            shape = "off-right" if one.mean > self.top else "m1" if row.series is None else f"m{colour}"
            parts.append(_DOT.format(min(99.0, 100 * one.mean / self.top), shape, colour))
        told = Markup('role="img" aria-label="{}"').format(_spoken(row, split, one))
        return Markup('<svg class="forest" {}>{}</svg>').format(
            told if row.series else Markup('aria-hidden="true"'), Markup("").join(parts)
        )


def headline(view: View, rates: Sequence[Mapping[Any, Any]], told: Mapping[str, Any]) -> Headline:
    """The figure of any medal.

    Args:
        view: the competitions, and the series from the best to the worst.
        rates: rows of `Aggregate.rates` of any medal.
        told: `sizes` of splits, `percentiles` and `letters` by (series, split), `usage` by series.
    """
    splits, chosen = splits_of(rates), first_split(rates)
    found: dict[int, dict[str, Estimate]] = {series.index: {} for series in view.series}
    for row in rates:
        key = view.series_of(row).index, str(row["split"])
        if key[1] in splits:
            found[key[0]][key[1]] = _estimate(row, full_size(row, told["sizes"]), told, key)
    rows = [Row(s.label, s, found[s.index], _facts(view, s, told["usage"].get(s.index))) for s in view.series]
    ends = [end for own in found.values() for one in own.values() for end in (one.mean, *one.wide, *one.near)]
    most = max((end for end in ends if not math.isnan(end)), default=1.0)
    top = next((step for step in (0.1, 0.2, 0.25, 0.4, 0.5, 0.6, 0.8) if most <= step), 1.0)
    models = {split for split in splits for c in _of(view, split) if not c.human}
    # What others reached on a whole split is no measure of results on a part of it.
    whole = {split for own in found.values() for split, one in own.items() if not one.partial}
    published = [row for row in published_agents() if whole & set(row.estimates)]
    return Headline(rows, splits, chosen, top, _human(view, splits), models, published)


@cache
def published_agents() -> tuple[Row, ...]:
    """The rows of the published leaderboard."""
    text = resources.files("grading.page").joinpath("leaderboard.csv").read_text("utf-8")
    rows = []
    for row in csv.DictReader(text.splitlines()):
        rates = {
            split: Estimate(float(row[split]) / 100, sem=float(row[f"{split}_sem"]) / 100)
            for split in (*BENCHMARK_SPLITS, "all")
        }
        notes = [row["models"], f"{row['hours']} h", row["date"]]
        notes += ["padded"] * (row["padded"] == "yes") + ["uses leaks"] * (row["uses_leaks"] == "yes")
        rows.append(Row(row["agent"], None, rates, " · ".join(notes)))
    return tuple(rows)


def _estimate(row: Mapping[Any, Any], full: int, told: Mapping[str, Any], key: tuple[int, str]) -> Estimate:
    return Estimate(
        float(row["mean"]),
        (float(row["ci_low"]), float(row["ci_high"])),
        (float(row["both_low"]), float(row["both_high"])),
        float(row["sem"]),
        int(row["competitions"]),
        full,
        int(row["seeds"]),
        int(row["missing"]),
        told["percentiles"].get(key),
        told["letters"].get(key, ""),
    )


def _facts(view: View, series: Series, usage: Mapping[Any, Any] | None) -> str:
    """Hours and dollars of a run, as far as they are known."""
    times = [r.duration for r in view.results if r.series == series and r.duration is not None]
    known = [seconds for seconds in times if math.isfinite(seconds)]
    hours = [f"{_round(mean(known))}"] if known else []
    if usage is None or math.isnan(usage["cost_usd"]):
        return "".join(f"{text} a run" for text in hours)
    return f"{' and '.join([*hours, money(usage['cost_per_run'])])} a run, {_whole(usage['cost_usd'])} in all"


def _round(seconds: float) -> str:
    """A duration in hours, minutes or seconds.

    >>> _round(54_061.0), _round(754.0)
    ('15 h', '13 min')
    """
    unit = 3600 if seconds >= 3600 else 60 if seconds >= 60 else 1
    return duration(unit * round(seconds / unit))


def _whole(dollars: float) -> str:
    return f"${dollars:,.0f}" if dollars >= 100 else money(dollars)


def _of(view: View, split: str) -> list[Any]:
    return [
        c for c in view.competitions if c.complexity == split or (split == "all" and c.complexity in BENCHMARK_SPLITS)
    ]


def _human(view: View, splits: Sequence[str]) -> dict[str, float]:
    """The share of a competition's human teams with a medal, as a mean over competitions."""
    shares = {}
    for split in splits:
        teams = [c.thresholds.teams for c in _of(view, split) if c.human and c.thresholds and c.thresholds.teams]
        shares[split] = mean([medal_places(count).bronze / count for count in teams])
    return {split: share for split, share in shares.items() if not math.isnan(share)}


def _spoken(row: Row, split: str, one: Estimate | None) -> str:
    if one is None or math.isnan(one.mean):
        return f"{row.label}, {split}: not known"
    ends = "" if math.isnan(one.near[0]) else f", interval {percent(one.near[0], 0)} to {percent(one.near[1], 0)}"
    return f"{row.label}, {split}: {percent(one.mean)} %{ends}"
