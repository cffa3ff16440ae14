"""How results grow with time: medal rates at 1, 2, 4 ... hours, from snapshots of submissions taken during runs."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, cast

import pandas as pd

from grading.aggregate import BENCHMARK_SPLITS, SERIES, latest_grades
from grading.statistics import mean, standard_error, t_interval

OVER_TIME_RATES = ("any_medal", "gold_medal", "silver_medal", "bronze_medal", "above_median", "valid_submission")
_COLUMNS = [*SERIES, "split", "rate", "at_seconds", "mean", "sem", "ci_low", "ci_high", "seeds", "competitions"]
_HOUR = 3600.0


def moments(longest: float) -> list[float]:
    """Seconds at which rates are told: doubling from an hour, or from a minute where nothing took an hour.

    The last one is `longest`, in full hours or minutes.

    >>> [at / 3600 for at in moments(22.5 * 3600)]
    [1.0, 2.0, 4.0, 8.0, 16.0, 23.0]
    >>> [at / 60 for at in moments(200)]
    [1.0, 2.0, 4.0]
    """
    if not math.isfinite(longest) or longest <= 0:
        return []
    unit = _HOUR if longest > _HOUR else 60.0
    end = math.ceil(longest / unit)
    return [unit * 2**n for n in range(end.bit_length()) if 2**n < end] + [unit * end]


def over_time(grades: pd.DataFrame, snapshots: pd.DataFrame, at: Sequence[float] | None = None) -> pd.DataFrame:
    """Rates at moments of the runs: one row a series, split, rate and moment; mean, sem and 95 % t-interval over seeds.

    `snapshots` has one row a graded snapshot: run_group, run_id, competition_id, seed, at_seconds since the start of
    the run, and any of the rates. At a moment each run counts with its newest snapshot until then; before its first
    one it has nothing. Runs, seeds and splits are those of `grades`; runs of which no snapshot was ever taken are left
    out together with their seed's other runs in the split, since nothing is known about them.
    """
    if snapshots.empty or grades.empty:
        return pd.DataFrame(columns=_COLUMNS)
    taken = snapshots.sort_values("at_seconds", kind="stable")
    times = list(at) if at is not None else moments(float(taken["at_seconds"].max()))
    rates = [rate for rate in OVER_TIME_RATES if rate in taken and taken[rate].notna().any()]
    histories: dict[Any, pd.DataFrame] = dict(iter(taken.groupby(["run_group", "run_id"])))
    rows: list[dict[str, Any]] = []
    for key, group in latest_grades(grades).groupby(SERIES, sort=True, dropna=False):
        series = dict(zip(SERIES, cast("tuple[str, ...]", key), strict=True))
        for split, part in _parts(group):
            known = [(row["run_group"], row["run_id"]) in histories for row in part.to_dict("records")]
            unknown = set(part.loc[[not each for each in known], "seed"])
            counted = part[~part["seed"].isin(unknown)]
            if counted.empty:
                continue
            for moment in times:
                for rate in rates:
                    per_seed = [
                        mean([_state(histories[r["run_group"], r["run_id"]], rate, moment) for r in runs])
                        for runs in (own.to_dict("records") for _, own in counted.groupby("seed"))
                    ]
                    interval = t_interval(per_seed)
                    rows.append(
                        {
                            **series,
                            "split": split,
                            "rate": rate,
                            "at_seconds": moment,
                            "mean": mean(per_seed),
                            "sem": standard_error(per_seed),
                            "ci_low": interval.low,
                            "ci_high": interval.high,
                            "seeds": len(per_seed),
                            "competitions": counted["competition_id"].nunique(),
                        }
                    )
    return pd.DataFrame(rows, columns=_COLUMNS)


def _parts(group: pd.DataFrame) -> list[tuple[str, pd.DataFrame]]:
    parts = [(str(split), part) for split, part in group.groupby("complexity", sort=True)]
    benchmark = group[group["complexity"].isin(BENCHMARK_SPLITS)]
    return [*parts, ("all", benchmark)] if len(benchmark) else parts


def _state(history: pd.DataFrame, rate: str, moment: float) -> float:
    """Whether a run held the rate at the moment: 1, 0, and 0 before its first snapshot."""
    before = history[history["at_seconds"] <= moment]
    return 0.0 if before.empty or pd.isna(before[rate].iloc[-1]) else float(bool(before[rate].iloc[-1]))
