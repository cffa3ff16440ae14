"""Statistics of several attempts at a competition: pass@k, best of k, and a table of competitions."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import pandas as pd

from grading.medals import human_percentile
from grading.statistics.counting import EVERYTHING, Cells, Counting, cells_of
from grading.statistics.intervals import COVERED, interval_over_competitions
from grading.statistics.seeds import expected_best, mean, pass_at_k, standard_error
from grading.statistics.series import RATES, SERIES

_PASS_COLUMNS = [*SERIES, "split", "rate", "k", "mean", "ci_low", "ci_high", "competitions"]
_COMPETITION_COLUMNS = [*SERIES, "competition_id", "complexity", "category", "attempts", "valid", "medals"]
_COMPETITION_COLUMNS += ["mean_score", "score_sem", "best_score", "human_percentile"]


def pass_at(
    grades: pd.DataFrame,
    runs: pd.DataFrame | None = None,
    counting: Counting = EVERYTHING,
    ks: Sequence[int] | None = None,
    rates: Sequence[str] = RATES,
) -> pd.DataFrame:
    """pass@k: the probability that at least one of k attempts at a competition succeeds, by series, split, rate and k.

    All runs that count for the rates in `grading.statistics.aggregate` are attempts, and pass@1 is the rate. `mean` is
    the mean over the `competitions` with k runs of the unbiased estimate (`grading.statistics.seeds.pass_at_k`).
    `ci_low` and `ci_high` are the 95 % interval over competitions like these. A k that more than a tenth of the
    competitions do not reach is left out, because it would describe other competitions than pass@1. `ks` defaults to
    1, 2, 4 ... and the largest number of runs.
    """
    rows: list[dict[str, Any]] = []
    for cells in cells_of(grades, runs, counting):
        most = max(map(len, cells.counted.values()), default=0)
        for rate in rates:
            outcomes = list(cells.outcomes(rate).values())
            for k in ks or _powers(most):
                values = [pass_at_k(len(runs), int(sum(runs)), k) for runs in outcomes if len(runs) >= k]
                if len(values) < COVERED * len(outcomes):
                    continue
                interval = interval_over_competitions(values)
                figures = {"rate": rate, "k": k, "mean": mean(values), "ci_low": interval.low, "ci_high": interval.high}
                rows.append({**cells.label, **figures, "competitions": len(values)})
    return pd.DataFrame(rows, columns=_PASS_COLUMNS)


def best_of(
    grades: pd.DataFrame,
    runs: pd.DataFrame | None = None,
    counting: Counting = EVERYTHING,
    ks: Sequence[int] | None = None,
) -> pd.DataFrame:
    """Expected best score of k attempts (`grading.statistics.seeds.expected_best`) by series, competition and k.

    Which attempts count is as in `competition_table`.
    """
    rows: list[dict[str, Any]] = []
    for cells, name, graded, attempts in _attempts(grades, runs, counting):
        scores = _scores(graded)
        lower = any(bool(row["is_lower_better"]) for row in graded)
        for k in ks or _powers(attempts):
            best = expected_best(scores, attempts, k, lower)
            rows.append({**cells.series, "competition_id": name, "k": k, "attempts": attempts, "score": best})
    return pd.DataFrame(rows, columns=[*SERIES, "competition_id", "k", "attempts", "score"])


def competition_table(
    grades: pd.DataFrame,
    percentiles: Mapping[str, Sequence[float]] | None = None,
    counting: Counting = EVERYTHING,
    runs: pd.DataFrame | None = None,
) -> pd.DataFrame:
    """One row per series and competition: attempts, medals, scores over seeds, and the human percentile.

    `human_percentile` is the mean over attempts of the share of teams beaten, 0-100. An attempt without a score beats
    nobody and counts 0. NaN where the leaderboard is unknown. Scores are of the valid attempts only, because no score
    stands for a failure.

    Each competition is a split of its own: a seed that is incomplete elsewhere counts. Attempts that are not graded, or
    whose grading failed, are left out, or count as attempts without a score if `counting` says so.
    """
    rows: list[dict[str, Any]] = []
    for cells, name, graded, attempts in _attempts(grades, runs, counting):
        scores, points = _scores(graded), (percentiles or {}).get(name)
        pick = min if any(bool(row["is_lower_better"]) for row in graded) else max
        numbers = [score for score in scores if not math.isnan(score)]
        category = next((row["category"] for row in graded), counting.facts.get(name, {}).get("category"))
        rows.append(
            {
                **cells.series,
                "competition_id": name,
                "complexity": cells.split,
                "category": category,
                "attempts": attempts,
                "valid": sum(bool(row["valid_submission"]) for row in graded),
                "medals": sum(bool(row["any_medal"]) for row in graded),
                "mean_score": mean(scores),
                "score_sem": standard_error(scores),
                "best_score": pick(numbers) if numbers else math.nan,
                "human_percentile": mean_percentile(scores, attempts, points),
            }
        )
    return pd.DataFrame(rows, columns=_COMPETITION_COLUMNS)


def percentile_of(cells: Cells, percentiles: Mapping[str, Sequence[float]]) -> float:
    """Mean share of teams beaten in a split, 0-100: over seeds, then over competitions with a known leaderboard.

    A run without a score counts 0. NaN without such a competition or without a counted seed.
    """
    return 100 * mean([mean(shares) for shares in cells.percentiles(percentiles).values()])


def mean_percentile(scores: Sequence[float], attempts: int, percentiles: Sequence[float] | None) -> float:
    """Mean share of teams beaten over `attempts`, of which `scores` have a score; the others, and NaN, count 0.

    NaN without attempts, and where the leaderboard is unknown or gives no direction.
    """
    if percentiles is None or len(percentiles) < 2 or percentiles[0] == percentiles[-1] or not attempts:
        return math.nan
    shares = [human_percentile(score, percentiles) for score in scores if not math.isnan(score)]
    return math.fsum(shares) / attempts


def _attempts(
    grades: pd.DataFrame, runs: pd.DataFrame | None, counting: Counting
) -> Iterator[tuple[Cells, str, list[Mapping[str, Any]], int]]:
    """Each competition of a series: its cells, its id, its graded rows, and the number of attempts that count."""
    for cells in cells_of(grades, runs, counting) if len(grades) else ():
        for name in cells.competitions if cells.split != "all" else ():  # its competitions have splits of their own
            graded = [row for seed in cells.seeds if (row := cells.rows.get((name, seed))) is not None]
            attempts = len(cells.seeds) if counting.incomplete == "fail" else len(graded)
            if attempts:
                yield cells, name, graded, attempts


def _scores(graded: Sequence[Mapping[str, Any]]) -> list[float]:
    return [float(row["score"]) for row in graded if row["valid_submission"]]


def _powers(most: int) -> list[int]:
    """1, 2, 4 ... below `most`, and `most`.

    >>> _powers(6)
    [1, 2, 4, 6]
    """
    return [k for k in (2**n for n in range(most.bit_length())) if k < most] + ([most] if most else [])
