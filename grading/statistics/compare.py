"""Compare two run groups: changes by competition, and paired differences with their uncertainty."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import pandas as pd

from grading.statistics.seeds import (
    bootstrap_interval,
    holm,
    mean,
    paired_p_value,
    smallest_difference,
    standard_error,
    t_interval,
)
from grading.statistics.series import RATES, by_split, latest_grades, split_order

_COMPETITION_COLUMNS = ["competition_id", "complexity", "change", "score_a", "score_b", "score_difference", "score_sem"]
_COMPETITION_COLUMNS += ["seeds_a", "seeds_b", *(f"{rate}_{side}" for rate in RATES for side in "ab")]
_DIFFERENCE_COLUMNS = ["split", "rate", "mean_a", "mean_b", "difference", "sem", "ci_low", "ci_high"]
_DIFFERENCE_COLUMNS += ["bootstrap_low", "bootstrap_high", "p_value", "p_corrected", "smallest", "competitions"]

# Rates for which more is better. Bronze and silver are excluded, because fewer of them can mean more gold.
_ASCENDING = ("any_medal", "gold_medal", "above_median", "valid_submission", "submission_exists")

TESTED = ("any_medal", "gold_medal", "above_median", "valid_submission")
"""The rates whose differences are tested, and for whose number the p-values are corrected."""


@dataclass(frozen=True)
class Comparison:
    """Differences of B from A.

    competitions: one row per competition that both have: mean scores over seeds, their difference (B - A) with its
        standard error (Welch: variances add), rates of each, and `change`: "better", "worse", "mixed" or "same".
    differences: one row per split and rate: means over competitions, the mean paired difference B - A with its standard
        error, 95 % t-interval, 95 % bootstrap interval over competitions, the p-value of the paired t-test, also
        corrected for all rows that are tested (Holm), and the smallest true difference that the test would find in 80 %
        of repetitions.
    only_a, only_b: competitions that only one side has. They are left out of both tables.
    """

    competitions: pd.DataFrame
    differences: pd.DataFrame
    only_a: list[str]
    only_b: list[str]


def compare(a: pd.DataFrame, b: pd.DataFrame) -> Comparison:
    """Compare the grades of two series, paired by competition. Seeds of a competition are averaged first.

    Failed gradings are ignored.
    """
    sides = [table[table["outcome"] != "failed"] for table in (latest_grades(a), latest_grades(b))]
    parts = [{str(name): part for name, part in side.groupby("competition_id")} for side in sides]
    both = sorted(parts[0].keys() & parts[1].keys())
    rows = [_row(name, parts[0][name], parts[1][name]) for name in both]
    competitions = pd.DataFrame(rows, columns=_COMPETITION_COLUMNS)
    splits = sorted(by_split(competitions), key=lambda each: split_order(each[0]))
    differences = [_difference(split, rate, part) for split, part in splits for rate in RATES]
    # "all" repeats the only split that there is, and is then no test of its own.
    alone = len({split for split, _ in splits} - {"all"}) == 1
    tested = [row for row in differences if row["rate"] in TESTED and not (alone and row["split"] == "all")]
    for row, p in zip(tested, holm([row["p_value"] for row in tested]), strict=True):
        row["p_corrected"] = p
    for row in differences if alone else ():
        if row["split"] == "all":
            same = (each for each in tested if each["rate"] == row["rate"])
            row["p_corrected"] = next((each["p_corrected"] for each in same), math.nan)
    return Comparison(
        competitions,
        pd.DataFrame(differences, columns=_DIFFERENCE_COLUMNS),
        sorted(parts[0].keys() - parts[1].keys()),
        sorted(parts[1].keys() - parts[0].keys()),
    )


def _row(name: str, a: pd.DataFrame, b: pd.DataFrame) -> dict[str, Any]:
    scores = [[float(s) for s in side.loc[side["valid_submission"].astype(bool), "score"]] for side in (a, b)]
    means, errors = [mean(s) for s in scores], [standard_error(s) for s in scores]
    rates = {f"{rate}_{side}": float(part[rate].mean()) for rate in RATES for side, part in (("a", a), ("b", b))}
    gained = (means[1] - means[0]) * (-1.0 if bool(b["is_lower_better"].iloc[0]) else 1.0)
    steps = [rates[f"{rate}_b"] - rates[f"{rate}_a"] for rate in _ASCENDING] + [gained]
    better, worse = any(step > 0 for step in steps), any(step < 0 for step in steps)  # NaN is neither
    change = "mixed" if better and worse else "better" if better else "worse" if worse else "same"
    return {
        "competition_id": name,
        "complexity": b["complexity"].iloc[0],
        "change": change,
        "score_a": means[0],
        "score_b": means[1],
        "score_difference": means[1] - means[0],
        "score_sem": math.hypot(*errors),
        "seeds_a": len(a),
        "seeds_b": len(b),
        **rates,
    }


def _difference(split: str, rate: str, part: pd.DataFrame) -> dict[str, Any]:
    before, after = (part[f"{rate}_{side}"].tolist() for side in "ab")
    differences = [y - x for x, y in zip(before, after, strict=True)]
    interval, bootstrap = t_interval(differences), bootstrap_interval(differences)
    return {
        "split": split,
        "rate": rate,
        "mean_a": mean(before),
        "mean_b": mean(after),
        "difference": mean(differences),
        "sem": standard_error(differences),
        "ci_low": interval.low,
        "ci_high": interval.high,
        "bootstrap_low": bootstrap.low,
        "bootstrap_high": bootstrap.high,
        "p_value": paired_p_value(differences),
        "p_corrected": math.nan,
        "smallest": smallest_difference(standard_error(differences), len(differences) - 1),
        "competitions": len(differences),
    }
