"""How often agents had submissions checked by the validation service, over time and over dollars."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pandas as pd

from grading.statistics.counting import EVERYTHING, Counting, cells_of
from grading.statistics.intervals import count_interval
from grading.statistics.learning import Spending, is_priced, longest_run, steps, when
from grading.statistics.over_time import moments
from grading.statistics.seeds import mean
from grading.statistics.series import SERIES

_COLUMNS = [*SERIES, "split", "axis", "at", "validations", "ci_low", "ci_high"]


def validation_counts(
    grades: pd.DataFrame,
    validations: pd.DataFrame,
    runs: pd.DataFrame | None = None,
    spent: Spending | None = None,
    counting: Counting = EVERYTHING,
) -> pd.DataFrame:
    """One row per series, split, axis ("seconds" or "dollars") and point on it. `spent` is that of `spending`.

    `validations` is the mean number of checked submissions until then: over seeds, then over competitions, of the cells
    that the rates count, with the ends of its 95 % interval over other runs of these competitions. A run that had
    nothing checked counts 0. Series of which no run had anything checked are left out; over dollars also those in which
    a price or a start is unknown. Requests that were refused do not count.
    """
    if grades.empty or validations.empty:
        return pd.DataFrame(columns=_COLUMNS)
    checked: dict[tuple[str, str], list[float]] = {}
    for row in validations.to_dict("records"):
        checked.setdefault((row["run_group"], row["run_id"]), []).append(float(row["at_seconds"]))
    spent = spent or {}
    longest = max(longest_run(runs), *(max(times) for times in checked.values()))
    most = max((line[-1][1] for line in spent.values() if line), default=0.0)
    rows: list[dict[str, Any]] = []
    for cells in cells_of(grades, runs, counting):
        keys = {key: (str(row["run_group"]), str(row["run_id"])) for key, row in cells.rows.items()}
        if not cells.counted or not any(key in checked for key in keys.values()):
            continue
        own = {key: spent.get(run, []) for key, run in keys.items()}
        axes = {"seconds": moments(longest), "dollars": steps(most) if is_priced(own.values()) else []}
        for axis, points in axes.items():
            for point in points:
                ends = {key: when(own[key], point) if axis == "dollars" else point for key in keys}
                counts: Mapping[tuple[str, Any], int] = {
                    key: sum(at <= ends[key] for at in checked.get(run, ())) for key, run in keys.items()
                }
                by_competition = [[float(counts.get((c, s), 0)) for s in seeds] for c, seeds in cells.counted.items()]
                interval = count_interval(by_competition)
                figures = {"validations": mean([mean(each) for each in by_competition])}
                figures |= {"ci_low": interval.low, "ci_high": interval.high}
                rows.append({**cells.label, "axis": axis, "at": point, **figures})
    return pd.DataFrame(rows, columns=_COLUMNS)
