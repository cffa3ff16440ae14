"""Learning curves: medals and human percentiles over time and over dollars."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from typing import Any

import pandas as pd

from grading.medals import human_percentile
from grading.statistics.counting import EVERYTHING, Counting, cells_of
from grading.statistics.intervals import interval_over_runs
from grading.statistics.over_time import Courses, moments
from grading.statistics.seeds import mean
from grading.statistics.series import SERIES

_COLUMNS = [*SERIES, "split", "axis", "at"]
_COLUMNS += [f"{name}{end}" for name in ("any_medal", "percentile") for end in ("", "_low", "_high")]


Spending = Mapping[tuple[str, str], Sequence[tuple[float, float]]]
"""By run group and run id: seconds since the start of the run, and dollars spent until then."""


def steps(most: float) -> list[float]:
    """Sums in dollars at which curves are reported: seven doublings that end at `most`; empty without a cost.

    >>> steps(64.0)
    [1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0]
    """
    return [most / 2**n for n in range(6, -1, -1)] if most > 0 and math.isfinite(most) else []


def learning(
    grades: pd.DataFrame,
    snapshots: pd.DataFrame,
    runs: pd.DataFrame | None = None,
    spent: Spending | None = None,
    counting: Counting = EVERYTHING,
    percentiles: Mapping[str, Sequence[float]] | None = None,
) -> pd.DataFrame:
    """One row per series, split, axis ("seconds" or "dollars") and point on it. `spent` is that of `spending`.

    `any_medal` is the rate and `percentile` the mean human percentile, each with the newest submission that a run had
    when it had run that long or spent that much. A run that has spent less has ended, and counts with its grade.
    Competitions and seeds are those of the rates, and a run without a submission counts 0. Competitions without a
    leaderboard do not count in the percentile, which is NaN without any. `_low` and `_high` are the ends of the 95 %
    interval over other runs of these competitions.

    Series without snapshots are left out; over dollars also those in which the cost of a request, or the start of a run
    that made requests, is unknown.
    """
    if snapshots.empty or grades.empty:
        return pd.DataFrame(columns=_COLUMNS)
    spent, courses = spent or {}, Courses.of(snapshots, runs)
    boards = {
        name: points for name, points in (percentiles or {}).items() if len(points) > 1 and points[0] != points[-1]
    }
    longest = max(float(snapshots["at_seconds"].max()), longest_run(runs))
    most = max((line[-1][1] for line in spent.values() if line), default=0.0)
    rows: list[dict[str, Any]] = []
    for cells in cells_of(grades, runs, counting):
        states = courses.states(cells)
        if not cells.counted or not any(state.history for state in states.values()):
            continue
        own = {key: spent.get((row["run_group"], row["run_id"]), []) for key, row in cells.rows.items()}
        axes = {"seconds": moments(longest), "dollars": steps(most) if is_priced(own.values()) else []}
        for axis, points in axes.items():
            for point in points:
                last = point == points[-1]
                now = {
                    key: state.at(point if axis == "seconds" else when(own[key], point), last)
                    for key, state in states.items()
                }
                medals = [[_medal(now.get((c, s))) for s in seeds] for c, seeds in cells.counted.items()]
                shares = [
                    [_share(now.get((c, s)), boards[c]) for s in seeds]
                    for c, seeds in cells.counted.items()
                    if c in boards
                ]
                figures = _figure("any_medal", medals) | _figure("percentile", shares, binary=False, unit=100.0)
                rows.append({**cells.label, "axis": axis, "at": point, **figures})
    return pd.DataFrame(rows, columns=_COLUMNS)


def _figure(name: str, runs: Sequence[Sequence[float]], binary: bool = True, unit: float = 1.0) -> dict[str, float]:
    """The mean of outcomes by competition, with its interval."""
    interval = interval_over_runs(runs, binary=binary)
    found = {"": mean([mean(each) for each in runs]), "_low": interval.low, "_high": interval.high}
    return {f"{name}{end}": unit * value for end, value in found.items()}


def _medal(row: Mapping[str, Any] | None) -> float:
    return 0.0 if row is None or pd.isna(row["any_medal"]) else float(bool(row["any_medal"]))


def _share(row: Mapping[str, Any] | None, points: Sequence[float]) -> float:
    if row is None or pd.isna(row["score"]):
        return 0.0
    return human_percentile(float(row["score"]), points) / 100


def when(line: Sequence[tuple[float, float]], dollars: float) -> float:
    """The time at which a run exceeds a sum; infinity if it never does."""
    return next((at for at, cost in line if cost > dollars * (1 + 1e-9)), math.inf)


def spending(runs: pd.DataFrame | None, usage: pd.DataFrame | None) -> Spending:
    """By run: seconds since its start, and dollars spent until then, for each request; NaN after an unknown price."""
    if usage is None or usage.empty or runs is None or runs.empty:
        return {}
    started = dict(zip(_runs_of(runs), _seconds(runs["started_at"]), strict=True))
    calls: dict[tuple[str, str], list[tuple[float, float]]] = {}
    costs = usage["cost_usd"].astype(float).tolist()
    for key, at, cost in zip(_runs_of(usage), _seconds(usage["started_at"]), costs, strict=True):
        calls.setdefault(key, []).append((at - started.get(key, math.nan), cost))
    lines: dict[tuple[str, str], list[tuple[float, float]]] = {}
    for key, requests in calls.items():
        total, line = 0.0, []
        for moment, cost in sorted(requests, key=lambda each: each[0]):
            total += cost if not math.isnan(moment) else math.nan
            line.append((moment, total))
        lines[key] = line
    return lines


def is_priced(spent: Collection[Sequence[tuple[float, float]]]) -> bool:
    """Whether any run has spent something, and no price is unknown."""
    return any(spent) and all(math.isfinite(cost) for line in spent for _, cost in line)


def _seconds(moments: pd.Series) -> list[float]:
    """Seconds since 1970; NaN where unknown."""
    times = pd.to_datetime(moments, utc=True, format="ISO8601")
    return (times - pd.Timestamp(0, tz="UTC")).dt.total_seconds().tolist()


def _runs_of(table: pd.DataFrame) -> list[tuple[str, str]]:
    return list(zip(table["run_group"].astype(str), table["run_id"].astype(str), strict=True))


def longest_run(runs: pd.DataFrame | None) -> float:
    """Seconds that the longest run took; 0 if none is known."""
    if runs is None or runs.empty or "duration_seconds" not in runs:
        return 0.0
    known = [float(each) for each in runs["duration_seconds"] if not pd.isna(each) and 0 <= each < math.inf]
    return max(known, default=0.0)
