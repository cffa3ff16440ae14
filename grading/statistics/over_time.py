"""Medal rates after 1, 2, 4 ... hours, from snapshots of submissions taken during runs."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import pandas as pd

from grading.statistics.seeds import mean, standard_error, t_interval
from grading.statistics.series import SERIES, by_series, by_split, latest_grades

OVER_TIME_RATES = ("any_medal", "gold_medal", "silver_medal", "bronze_medal", "above_median", "valid_submission")
_COLUMNS = [*SERIES, "split", "rate", "at_seconds", "mean", "sem", "ci_low", "ci_high", "seeds", "competitions"]
_HOUR = 3600.0


def moments(longest: float) -> list[float]:
    """Times in seconds at which rates are reported: doubling from an hour, or from a minute if no run took an hour.

    The last one is `longest`, rounded up to full hours or minutes.

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
    """Rates over time: one row per series, split, rate and moment; mean, sem and 95 % t-interval over seeds.

    `snapshots` has one row per graded snapshot: run_group, run_id, competition_id, seed, at_seconds since the start of
    the run, and any of the rates. At each moment a run counts with its newest snapshot so far, and before the first one
    as having no submission. Runs, seeds and splits are those of `grades`. If a run has no snapshots, its seed is left
    out of the split.
    """
    if snapshots.empty or grades.empty:
        return pd.DataFrame(columns=_COLUMNS)
    taken = snapshots.sort_values("at_seconds", kind="stable")
    times = list(at) if at is not None else moments(float(taken["at_seconds"].max()))
    rates = [rate for rate in OVER_TIME_RATES if rate in taken and taken[rate].notna().any()]
    histories: dict[Any, pd.DataFrame] = dict(iter(taken.groupby(["run_group", "run_id"])))
    rows: list[dict[str, Any]] = []
    for series, group in by_series(latest_grades(grades)):
        for split, part in by_split(group):
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


def _state(history: pd.DataFrame, rate: str, moment: float) -> float:
    """1 if the newest snapshot of a run at `moment` has the outcome `rate`, else 0, also before the first snapshot."""
    before = history[history["at_seconds"] <= moment]
    return 0.0 if before.empty or pd.isna(before[rate].iloc[-1]) else float(bool(before[rate].iloc[-1]))
