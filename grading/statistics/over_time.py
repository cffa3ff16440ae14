"""Medal rates after 1, 2, 4 ... hours, from snapshots of submissions taken during runs."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pandas as pd

from grading.statistics.counting import EVERYTHING, Cells, Counting, cells_of
from grading.statistics.intervals import interval_over_runs
from grading.statistics.seeds import mean, standard_error
from grading.statistics.series import SERIES

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


def over_time(
    grades: pd.DataFrame,
    snapshots: pd.DataFrame,
    runs: pd.DataFrame | None = None,
    counting: Counting = EVERYTHING,
    at: Sequence[float] | None = None,
) -> pd.DataFrame:
    """Rates over time: one row per series, split, rate and moment; mean, sem and 95 % interval.

    Competitions and seeds are those of the rates in `grading.statistics.aggregate`. At each moment a run counts with
    its newest snapshot so far, and with its grade once it has ended. It counts 0 before its first snapshot, and all
    along if it has no submission. At the last moment all runs have ended, so that the curve ends at the rate.

    Args:
        grades: the graded submissions.
        snapshots: one row per graded snapshot: run_group, run_id, edition, at_seconds since the start of the run, and
            any of the rates. Without an edition it is that of the run. Series without snapshots
            are left out.
        runs: the table of runs, with the durations. A run whose duration is unknown ends at the last moment.
        counting: which runs count.
        at: moments in seconds; by default `moments` until the end of the longest run.
    """
    if snapshots.empty or grades.empty:
        return pd.DataFrame(columns=_COLUMNS)
    courses = Courses.of(snapshots, runs)
    longest = max([float(snapshots["at_seconds"].max()), *courses.ends.values()])
    times = list(at) if at is not None else moments(longest)
    rates = [rate for rate in OVER_TIME_RATES if rate in snapshots and snapshots[rate].notna().any()]
    rows: list[dict[str, Any]] = []
    for cells in cells_of(grades, runs, counting):
        states = courses.states(cells)
        if not any(state.history for state in states.values()) or not cells.counted:
            continue
        for moment in times:
            for rate in rates:
                now = {key: state.value(rate, moment, moment == times[-1]) for key, state in states.items()}
                rows.append({**cells.label, "rate": rate, "at_seconds": moment, **_summary(cells, now)})
    return pd.DataFrame(rows, columns=_COLUMNS)


def _summary(cells: Cells, now: Mapping[tuple[str, Any], float]) -> dict[str, Any]:
    """Statistics of the outcomes `now` by competition and seed; 0 where there is none."""
    outcomes = [[now.get((c, seed), 0.0) for seed in seeds] for c, seeds in cells.counted.items()]
    per_seed = [
        mean([now.get((c, seed), 0.0) for c, seeds in cells.counted.items() if seed in seeds])
        for seed in cells.counted_seeds
    ]
    interval = interval_over_runs(outcomes)
    return {
        "mean": mean([mean(runs) for runs in outcomes]),
        "sem": standard_error(per_seed) if cells.balanced else math.nan,
        "ci_low": interval.low,
        "ci_high": interval.high,
        "seeds": len(per_seed),
        "competitions": len(outcomes),
    }


@dataclass(frozen=True)
class State:
    """A graded run over time: its snapshots, in the order of time, and its grade, which counts from its end."""

    grade: Mapping[str, Any]
    history: list[dict[Any, Any]]
    end: float | None
    """Seconds; None if unknown."""

    def value(self, rate: str, moment: float, last: bool) -> float:
        """1 if the run's submission at `moment` has the outcome `rate`, else 0, also without a submission.

        `last` says that it is the last moment, when runs whose end is unknown have ended, too.
        """
        row = self.at(moment, last)
        return 0.0 if row is None or pd.isna(row[rate]) else float(bool(row[rate]))

    def at(self, moment: float, last: bool) -> Mapping[str, Any] | None:
        """The grade or the snapshot that counts at `moment`; None without a submission. `last` as for `value`."""
        if self.grade["outcome"] == "missing":
            return None
        newest = self.history[-1]["at_seconds"] if self.history else 0.0
        if moment == math.inf or (last if self.end is None else moment >= max(self.end, newest)):
            return self.grade
        before = [each for each in self.history if each["at_seconds"] <= moment]
        return before[-1] if before else None


@dataclass(frozen=True)
class Courses:
    """The course of each run: its snapshots and its end. Read once from the tables, for all splits."""

    histories: Mapping[Any, list[dict[Any, Any]]]
    """By run group, run id and edition, in the order of time."""
    ends: Mapping[tuple[str, str], float]
    """Seconds from the start to the end of each run whose duration is known."""

    @classmethod
    def of(cls, snapshots: pd.DataFrame, runs: pd.DataFrame | None) -> Courses:
        """The courses of the runs in the tables `snapshots` and `runs`."""
        return cls(_histories(snapshots, runs), _ends(runs))

    def states(self, cells: Cells) -> dict[tuple[str, Any], State]:
        """The graded runs of a split over time, by competition and seed."""
        return {key: self._state(row) for key, row in cells.rows.items()}

    def _state(self, row: Mapping[str, Any]) -> State:
        run = (row["run_group"], row["run_id"])
        history = self.histories.get((*run, row["edition"])) or self.histories.get((*run, None)) or []
        return State(row, history, self.ends.get(run))


def _histories(snapshots: pd.DataFrame, runs: pd.DataFrame | None) -> dict[Any, list[dict[Any, Any]]]:
    """The snapshots of each run in an edition, in the order of time."""
    own = {} if runs is None or runs.empty else {(r["run_group"], r["run_id"]): r["edition"] for r in _records(runs)}
    found: dict[Any, list[dict[Any, Any]]] = {}
    for row in _records(snapshots.sort_values("at_seconds", kind="stable")):
        run = (row["run_group"], row["run_id"])
        edition = row.get("edition")
        found.setdefault((*run, own.get(run) if edition is None or pd.isna(edition) else edition), []).append(row)
    return found


def _ends(runs: pd.DataFrame | None) -> dict[tuple[str, str], float]:
    if runs is None or runs.empty or "duration_seconds" not in runs:
        return {}
    known = ((row["run_group"], row["run_id"], float(row["duration_seconds"])) for row in _records(runs))
    return {(group, run): seconds for group, run, seconds in known if 0 <= seconds < math.inf}


def _records(table: pd.DataFrame) -> list[dict[Any, Any]]:
    return table.to_dict("records")
