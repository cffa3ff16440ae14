"""Compare two run groups: changes by competition, and paired differences with their uncertainty."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pandas as pd

from grading.statistics.counting import gives_shares, share_beaten
from grading.statistics.differences import QUESTIONS, Outcomes, Paired, TTest, correct, paired
from grading.statistics.same_rows import on_same_rows
from grading.statistics.seeds import mean, standard_error
from grading.statistics.series import RATES, by_split, latest_grades, split_order

_COMPETITION_COLUMNS = ["competition_id", "complexity", "change", "score_a", "score_b", "score_difference", "score_sem"]
_COMPETITION_COLUMNS += ["seeds_a", "seeds_b", *(f"{rate}_{side}" for rate in RATES for side in "ab")]
_DIFFERENCE_COLUMNS = ["split", "rate", "mean_a", "mean_b", "difference", "competitions", "question"]
_DIFFERENCE_COLUMNS += ["sem", "ci_low", "ci_high", "p_value", "p_corrected", "smallest"]

# Rates for which more is better. Bronze and silver are excluded, because fewer of them can mean more gold.
_ASCENDING = ("any_medal", "gold_medal", "above_median", "valid_submission", "submission_exists")

PERCENTILE = "percentile"
"""The share of teams that a run beats, beside the rates: it has more power than medals, which few runs earn."""
TESTED = ("any_medal", "gold_medal", "above_median", "valid_submission", PERCENTILE)
"""The outcomes whose differences are tested, and for whose number the p-values are corrected."""


@dataclass(frozen=True)
class Comparison:
    """Differences of B from A.

    competitions: one row per competition that both have: mean scores over seeds, their difference (B - A) with its
        standard error (Welch: variances add), rates of each, and `change`: "better", "worse", "mixed" or "same".
    differences: two rows per split and outcome: means over competitions, and the mean difference B - A with its
        standard error, 95 % interval and p-value. The `question` is "these" (would other runs of these competitions
        differ?) or "like_these" (would competitions like these?); see `grading.statistics.differences.paired`.
        `p_corrected` is corrected for all tests of the question in this table (Holm), `smallest` is the smallest true
        difference that the test would find in 80 % of repetitions. What cannot be known is NaN.
    only_a, only_b: competitions that only one side has. They are left out of both tables.
    on_all_rows: competitions in which runs with feedback have their scores on all test rows; see `on_same_rows`.
    """

    competitions: pd.DataFrame
    differences: pd.DataFrame
    only_a: list[str]
    only_b: list[str]
    on_all_rows: list[str]


def compare(a: pd.DataFrame, b: pd.DataFrame, leaderboards: Mapping[str, Sequence[float]] | None = None) -> Comparison:
    """Compare the grades of two series, paired by competition. Seeds of a competition are averaged first.

    Failed gradings are ignored. `leaderboards` has points of the leaderboard by competition, for the human percentile.
    """
    first, second = (table[table["outcome"] != "failed"] for table in (latest_grades(a), latest_grades(b)))
    first, second, on_all_rows = on_same_rows(first, second)
    sides = [first, second]
    parts = [{str(name): part for name, part in side.groupby("competition_id")} for side in sides]
    both = sorted(parts[0].keys() & parts[1].keys())
    rows = [_row(name, parts[0][name], parts[1][name]) for name in both]
    competitions = pd.DataFrame(rows, columns=_COMPETITION_COLUMNS)
    found: dict[tuple[str, str], Paired] = {}
    for split, part in sorted(by_split(competitions), key=lambda each: split_order(each[0])):
        chosen = [{name: side[name] for name in part["competition_id"]} for side in parts]
        for rate in (*RATES, PERCENTILE):
            one, two = (_outcomes(side, rate, leaderboards or {}) for side in chosen)
            if one:
                found[split, rate] = paired(one, two, rate != PERCENTILE)
    # "all" repeats the only split that there is, and is then no test of its own.
    alone = len({split for split, _ in found} - {"all"}) == 1
    tested = [key for key in found if key[1] in TESTED and not (alone and key[0] == "all")]
    found |= zip(tested, correct([found[key] for key in tested]), strict=True)
    if alone:
        found |= {("all", rate): found[key] for key in tested for rate in [key[1]] if ("all", rate) in found}
    return Comparison(
        competitions,
        pd.DataFrame([row for key, each in found.items() for row in _rows(*key, each)], columns=_DIFFERENCE_COLUMNS),
        sorted(parts[0].keys() - parts[1].keys()),
        sorted(parts[1].keys() - parts[0].keys()),
        on_all_rows,
    )


def _outcomes(parts: Mapping[str, pd.DataFrame], rate: str, leaderboards: Mapping[str, Sequence[float]]) -> Outcomes:
    """The outcome of each run by competition; percentiles only where there is a leaderboard."""
    if rate != PERCENTILE:
        return {name: part[rate].fillna(False).astype(float).tolist() for name, part in parts.items()}
    known = {name: points for name in parts if gives_shares(points := leaderboards.get(name, ()))}
    return {name: [share_beaten(row, known[name]) for row in parts[name].to_dict("records")] for name in known}


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


def _rows(split: str, rate: str, each: Paired) -> list[dict[str, Any]]:
    means = {"mean_a": each.a, "mean_b": each.b, "difference": each.difference, "competitions": each.competitions}
    return [
        {"split": split, "rate": rate, **means, "question": question, **_figures(getattr(each, question))}
        for question in QUESTIONS
    ]


def _figures(test: TTest) -> dict[str, float]:
    return {
        "sem": test.sem,
        "ci_low": test.interval.low,
        "ci_high": test.interval.high,
        "p_value": test.p_value,
        "p_corrected": test.corrected,
        "smallest": test.smallest,
    }
