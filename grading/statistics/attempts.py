"""Statistics of several attempts at a competition: pass@k, best of k, and a table of competitions."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import pandas as pd

from grading.medals import human_percentile
from grading.statistics.seeds import bootstrap_interval, expected_best, mean, pass_at_k, standard_error
from grading.statistics.series import RATES, SERIES, by_series, by_split, latest_grades

_PASS_COLUMNS = [*SERIES, "split", "rate", "k", "mean", "ci_low", "ci_high", "competitions"]
_COMPETITION_COLUMNS = [*SERIES, "competition_id", "complexity", "category", "attempts", "valid", "medals"]
_COMPETITION_COLUMNS += ["mean_score", "score_sem", "best_score", "human_percentile"]


def pass_at(grades: pd.DataFrame, ks: Sequence[int] | None = None) -> pd.DataFrame:
    """pass@k: the probability that at least one of k attempts at a competition succeeds, by series, split, rate and k.

    `mean` is the mean over competitions of the unbiased estimate (`grading.statistics.seeds.pass_at_k`), for the rates
    of the table; `ci_low` and `ci_high` are a 95 % bootstrap over competitions. Competitions with fewer than k graded
    attempts are left out; `competitions` is the number of those included. A failed grading is not an attempt.
    `ks` defaults to 1, 2, 4 ... and the largest number of attempts.
    """
    rows: list[dict[str, Any]] = []
    for series, group in _attempts(grades):
        counts = group.groupby("competition_id").size()
        wanted = ks or _powers(int(counts.max()) if len(counts) else 0)
        for split, part in by_split(group):
            for rate in RATES:
                tally = part.groupby("competition_id")[rate].agg(["size", "sum"]).astype(int)
                for k in wanted:
                    values = [pass_at_k(n, c, k) for n, c in zip(tally["size"], tally["sum"], strict=True) if n >= k]
                    if values:
                        interval = bootstrap_interval(values)
                        found = {"split": split, "rate": rate, "k": k, "mean": mean(values), "ci_low": interval.low}
                        rows.append({**series, **found, "ci_high": interval.high, "competitions": len(values)})
    return pd.DataFrame(rows, columns=_PASS_COLUMNS)


def best_of(grades: pd.DataFrame, ks: Sequence[int] | None = None) -> pd.DataFrame:
    """Expected best score of k attempts (`grading.statistics.seeds.expected_best`) by series, competition and k."""
    rows: list[dict[str, Any]] = []
    for series, group in _attempts(grades):
        for competition_id, part in group.groupby("competition_id"):
            scores = _scores(part)
            for k in ks or _powers(len(part)):
                best = expected_best(scores, len(part), k, bool(part["is_lower_better"].iloc[0]))
                rows.append({**series, "competition_id": competition_id, "k": k, "attempts": len(part), "score": best})
    return pd.DataFrame(rows, columns=[*SERIES, "competition_id", "k", "attempts", "score"])


def competition_table(grades: pd.DataFrame, percentiles: Mapping[str, Sequence[float]] | None = None) -> pd.DataFrame:
    """One row per series and competition: attempts, medals, scores over seeds, and the human percentile.

    `human_percentile` is the mean over valid attempts of the share of teams beaten, 0-100, NaN where unknown.
    """
    rows: list[dict[str, Any]] = []
    for series, group in _attempts(grades):
        for competition_id, part in group.groupby("competition_id"):
            scores = _scores(part)
            points = (percentiles or {}).get(str(competition_id))
            shares = [human_percentile(score, points) for score in scores]
            pick = min if bool(part["is_lower_better"].iloc[0]) else max
            numbers = [score for score in scores if not math.isnan(score)]
            rows.append(
                {
                    **series,
                    "competition_id": competition_id,
                    "complexity": part["complexity"].iloc[0],
                    "category": part["category"].iloc[0],
                    "attempts": len(part),
                    "valid": int(part["valid_submission"].sum()),
                    "medals": int(part["any_medal"].sum()),
                    "mean_score": mean(scores),
                    "score_sem": standard_error(scores),
                    "best_score": pick(numbers) if numbers else math.nan,
                    "human_percentile": mean([share for share in shares if not math.isnan(share)]),
                }
            )
    return pd.DataFrame(rows, columns=_COMPETITION_COLUMNS)


def _attempts(grades: pd.DataFrame) -> Iterator[tuple[dict[str, str], pd.DataFrame]]:
    """The attempts of each series. A failed grading says nothing about the agent and does not count."""
    table = latest_grades(grades)
    return by_series(table[table["outcome"] != "failed"])


def _scores(part: pd.DataFrame) -> list[float]:
    return [float(score) for score in part.loc[part["valid_submission"].astype(bool), "score"]]


def _powers(most: int) -> list[int]:
    """1, 2, 4 ... below `most`, and `most`.

    >>> _powers(6)
    [1, 2, 4, 6]
    """
    return [k for k in (2**n for n in range(most.bit_length())) if k < most] + ([most] if most else [])
