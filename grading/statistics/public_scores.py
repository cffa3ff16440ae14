"""Public and private scores of runs with feedback: what agents could know of their files, and what these are worth."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import pandas as pd

from grading.medals import human_percentile
from grading.statistics.seeds import mean
from grading.statistics.series import SERIES, by_series, latest_grades

_RUN = [*SERIES, "run_id", "competition_id", "seed"]
_FILES = [*_RUN, "submission", "public_score", "told", "private_score", "gap", "public", "private"]
_FILES += ["chosen", "counted", "any_medal"]
_RUNS = [*_RUN, "files", "gap", "cost", "percentile_gap", "percentile_cost", "shake_up", "medal_lost"]
_TOTALS = [*SERIES, "runs", "with_feedback", "files", "gap", "cost", "shake_up", "medals_lost"]


def by_file(
    grades: pd.DataFrame, submissions: pd.DataFrame, percentiles: Mapping[str, Sequence[float]]
) -> pd.DataFrame:
    """One row per file with a public score, of graded runs with feedback, by run and number.

    `gap` is how much better the public score is than the private one, in units of the metric. `public` and `private`
    are the human percentiles of both; a file without a private score beats nobody. `counted` is the file of the final
    choice whose score is the grade.

    Args:
        grades: the table of grades.
        submissions: the rows of the table of snapshots that have a number in `submission`.
        percentiles: scores of the leaderboard by competition.
    """
    rows: list[dict[str, Any]] = []
    files: dict[tuple[str, str], list[dict[Any, Any]]] = {}
    for row in submissions.sort_values("submission").to_dict("records") if len(submissions) else ():
        files.setdefault((row["run_group"], row["run_id"]), []).append(row)
    for grade in _with_feedback(grades):
        points, sign = percentiles.get(grade["competition_id"]), -1.0 if grade["is_lower_better"] else 1.0
        mine = [row for row in files.get((grade["run_group"], grade["run_id"]), ()) if _same(row, grade)]
        private = [_score(row) for row in mine]
        chosen = [n for n, row in enumerate(mine) if row["chosen"] is True and not math.isnan(private[n])]
        counted = max(chosen, key=lambda n: sign * private[n], default=None)
        for n, row in enumerate(mine):
            missing = math.isnan(private[n])
            beaten = human_percentile(row["public_score"], points)
            rows.append(
                {
                    **{name: grade[name] for name in _RUN},
                    **{name: row[name] for name in ("submission", "public_score", "told", "any_medal")},
                    "private_score": private[n],
                    "gap": sign * (row["public_score"] - private[n]),
                    "public": beaten,
                    "private": beaten * 0 if missing else human_percentile(private[n], points),
                    "chosen": row["chosen"] is True,
                    "counted": n == counted,
                }
            )
    return pd.DataFrame(rows, columns=_FILES)


def by_run(grades: pd.DataFrame, files: pd.DataFrame, percentiles: Mapping[str, Sequence[float]]) -> pd.DataFrame:
    """One row per graded run with feedback that has a file with a public score.

    `gap` is that of the file that counts. `cost` is how much better the best private score of its files is than the
    score that counts, at least 0. Both are in units of the metric; `percentile_gap` and `percentile_cost` are the same
    in percentage points of human teams. If no file of the final choice has a private score, it beats nobody, and the
    cost in units of the metric is NaN. `shake_up` is the mean change of the ranks of the run's files between public and
    private scores, divided by their number; NaN with fewer than two. `medal_lost`: a file had a medal, the grade none.
    """
    rows: list[dict[str, Any]] = []
    of_run = {tuple(key): part for key, part in files.groupby(["run_group", "run_id", "edition"])} if len(files) else {}
    for grade in _with_feedback(grades):
        mine = of_run.get((grade["run_group"], grade["run_id"], grade["edition"]))
        if mine is None:
            continue
        points, sign = percentiles.get(grade["competition_id"]), -1.0 if grade["is_lower_better"] else 1.0
        score, public = _score(grade), float(grade["public_score"] if grade["public_score"] is not None else math.nan)
        known = [value for value in (*mine["private_score"], score) if not math.isnan(value)]
        best = sign * max((sign * value for value in known), default=math.nan)
        none = math.isnan(score)
        final = human_percentile(best, points) * 0 if none else human_percentile(score, points)
        rows.append(
            {
                **{name: grade[name] for name in _RUN},
                "files": len(mine),
                "gap": sign * (public - score),
                "cost": sign * (best - score),
                "percentile_gap": human_percentile(public, points) - human_percentile(score, points),
                "percentile_cost": human_percentile(best, points) - final,
                "shake_up": shake_up(mine["public_score"], mine["private_score"]),
                "medal_lost": bool(mine["any_medal"].any()) and not grade["any_medal"],
            }
        )
    return pd.DataFrame(rows, columns=_RUNS)


def shake_up(public: pd.Series[float], private: pd.Series[float]) -> float:
    """The mean of |private rank - public rank| / n over n files; NaN if fewer than two have both scores.

    It is the figure for the teams of a competition on Kaggle, for the files of a run. Equal scores share a mean rank.

    >>> shake_up(pd.Series([0.7, 0.8, 0.9]), pd.Series([0.8, 0.7, 0.9]))
    0.2222222222222222
    """
    both = pd.DataFrame({"public": public, "private": private}).dropna().rank()
    return float((both["public"] - both["private"]).abs().mean() / len(both)) if len(both) > 1 else math.nan


def totals(grades: pd.DataFrame, runs: pd.DataFrame) -> pd.DataFrame:
    """One row per series with a row in `by_run`: means over the runs of a competition, then over competitions.

    `runs` are graded, `with_feedback` those with a row; `gap` and `cost` are in percentage points of human teams.
    """
    rows: list[dict[str, Any]] = []
    for series, group in by_series(latest_grades(grades)) if len(runs) else ():
        own = runs[(runs[SERIES] == list(series.values())).all(axis=1)]
        if own.empty:
            continue
        columns = {"gap": "percentile_gap", "cost": "percentile_cost", "shake_up": "shake_up"}
        means = own.groupby("competition_id")[list(columns.values())].mean()
        rows.append(
            {
                **series,
                "runs": len(group),
                "with_feedback": len(own),
                "files": int(own["files"].sum()),
                **{name: mean(means[column].dropna().tolist()) for name, column in columns.items()},
                "medals_lost": int(own["medal_lost"].sum()),
            }
        )
    return pd.DataFrame(rows, columns=_TOTALS)


def by_number(files: pd.DataFrame, numbers: Sequence[int]) -> pd.DataFrame:
    """Columns of the series, `number`, `public`, `private`: mean human percentiles of the best file so far.

    That is the one with the best public score among the first `number` files of a run. Competitions without a
    leaderboard are left out.
    """
    rows: list[dict[str, Any]] = []
    known = files[files["public"].notna()]
    for series, part in by_series(known) if len(known) else ():
        runs = [run.sort_values("submission") for _, run in part.groupby("run_id")]
        for number in numbers:
            # On ties of the percentile the first file is taken, as the agent keeps it.
            best = [run.head(number).sort_values("public", kind="stable", ascending=False).iloc[0] for run in runs]
            means = {name: mean([float(file[name]) for file in best]) for name in ("public", "private")}
            rows.append({**series, "number": number, **means})
    return pd.DataFrame(rows, columns=[*SERIES, "number", "public", "private"])


def _with_feedback(grades: pd.DataFrame) -> list[dict[Any, Any]]:
    """The newest grades of runs with feedback, without those whose grading failed."""
    if grades.empty or "feedback" not in grades:
        return []
    newest = latest_grades(grades)
    return newest[newest["feedback"].notna() & newest["outcome"].ne("failed")].to_dict("records")


def _score(row: Mapping[Any, Any]) -> float:
    return float(row["score"]) if row["valid_submission"] and not pd.isna(row["score"]) else math.nan


def _same(row: Mapping[Any, Any], grade: Mapping[Any, Any]) -> bool:
    """Whether both are of one edition. A row that does not state its own is of any."""
    edition = row.get("edition")
    return edition is None or pd.isna(edition) or edition == grade["edition"]
