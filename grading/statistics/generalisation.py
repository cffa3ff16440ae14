"""Generalisation: what agents measured on their own validation data against the score on the test set."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import pandas as pd

from grading.medals import human_percentile
from grading.statistics.seeds import mean
from grading.statistics.series import SERIES, by_series, latest_grades

SLACK = 5.0
"""Seconds by which a snapshot may be older than the report of its validation score: agents report after they submit."""
_PAIRS = [*SERIES, "run_id", "competition_id", "seed", "at_seconds", "own_score", "test_score", "any_medal", "final"]
_RUNS = [*SERIES, "run_id", "competition_id", "seed", "candidates", "own_score", "test_score", "best_score"]
_RUNS += ["gap", "regret", "percentile_gap", "percentile_regret", "medal_lost"]
_TOTALS = [*SERIES, "runs", "reporting", "candidates", "gap", "regret", "medals_lost"]


def pairs(grades: pd.DataFrame, snapshots: pd.DataFrame, own: pd.DataFrame) -> pd.DataFrame:
    """One row per candidate that was submitted and graded: its own validation score beside its score on the test set.

    A candidate belongs to the newest snapshot that was taken after it was reported, and before the next submitted one;
    the last one belongs to the grade of the run. `final` marks it. Candidates that were not submitted have no score on
    the test set and are left out.

    Args:
        grades: the graded submissions.
        snapshots: the graded snapshots; may be empty.
        own: the table `own_validations`.
    """
    rows: list[dict[str, Any]] = []
    reported, taken = _by_run(own), _by_run(snapshots)
    for series, group in by_series(latest_grades(grades)) if len(grades) and reported else ():
        for grade in group.to_dict("records"):
            mine = reported.get((grade["run_group"], grade["run_id"]))
            if mine is None:
                continue
            handed_in = [each for each in mine if each["submitted"]]
            history = [each for each in taken.get((grade["run_group"], grade["run_id"]), ()) if _same(each, grade)]
            who = {**series, **{name: grade[name] for name in ("run_id", "competition_id", "seed")}}
            rows += ({**who, **each} for each in _pairs_of(handed_in, history, grade))
    return pd.DataFrame(rows, columns=_PAIRS)


def by_run(
    grades: pd.DataFrame,
    snapshots: pd.DataFrame,
    own: pd.DataFrame,
    percentiles: Mapping[str, Sequence[float]] | None = None,
    found: pd.DataFrame | None = None,
) -> pd.DataFrame:
    """One row per run that reported, and of which any submission has a score: gap and regret of its final choice.

    `gap` is how much better the own validation score of the final candidate is than its score on the test set, in units
    of the metric, positive if the agent was too optimistic. `regret` is how much better the best graded snapshot is
    than the final score, at least 0. `percentile_gap` and `percentile_regret` are the same in percentage points of
    human teams, which can be averaged over competitions; NaN where the leaderboard is unknown. If the final submission
    has no score, it beats nobody, so that the percentile regret is what the best one beat; the other three are NaN.
    `medal_lost`: a snapshot had a medal and the final submission has none. `found` are the `pairs`, if they are known.
    """
    if grades.empty or own.empty:
        return pd.DataFrame(columns=_RUNS)
    found, taken = pairs(grades, snapshots, own) if found is None else found, _by_run(snapshots)
    last = {
        (row["run_group"], row["run_id"], row["edition"]): row["own_score"]
        for row in found[found["final"].astype(bool)].to_dict("records")
    }
    counts = own.groupby(["run_group", "run_id"]).size().to_dict()
    submitted = set(own[own["submitted"].astype(bool)].groupby(["run_group", "run_id"]).groups)
    rows: list[dict[str, Any]] = []
    for grade in latest_grades(grades).to_dict("records"):
        run = grade["run_group"], grade["run_id"]
        if run not in submitted or grade["outcome"] == "failed":
            continue
        sign, points = -1.0 if grade["is_lower_better"] else 1.0, (percentiles or {}).get(grade["competition_id"])
        history = [each for each in taken.get(run, ()) if _same(each, grade)]
        scores = [float(each["score"]) for each in history if not pd.isna(each["score"])]
        final = float(grade["score"]) if grade["valid_submission"] and not pd.isna(grade["score"]) else None
        if final is not None:
            scores.append(final)
        if not scores:
            continue
        best, said = sign * max(sign * score for score in scores), last.get((*run, grade["edition"]), math.nan)
        test = math.nan if final is None else final
        beaten = human_percentile(best, points) - (0.0 if final is None else human_percentile(final, points))
        rows.append(
            {
                **{name: grade[name] for name in (*SERIES, "run_id", "competition_id", "seed")},
                "candidates": int(counts[run]),
                "own_score": said,
                "test_score": test,
                "best_score": best,
                "gap": sign * (said - test),
                "regret": sign * (best - test),
                "percentile_gap": human_percentile(said, points) - human_percentile(test, points),
                "percentile_regret": beaten,
                "medal_lost": any(bool(each["any_medal"]) for each in history) and not grade["any_medal"],
            }
        )
    return pd.DataFrame(rows, columns=_RUNS)


def generalisation(grades: pd.DataFrame, found: pd.DataFrame) -> pd.DataFrame:
    """One row per series that reported: means of `by_run` in percentage points of human teams, over competitions.

    Columns: `runs` (graded), `reporting` (with a row in `found`), `candidates`, `gap`, `regret`, `medals_lost`.
    """
    rows: list[dict[str, Any]] = []
    for series, group in by_series(latest_grades(grades)) if len(found) else ():
        own = found[(found[SERIES] == list(series.values())).all(axis=1)]
        if own.empty:
            continue
        means = own.groupby("competition_id")[["percentile_gap", "percentile_regret"]].mean()
        rows.append(
            {
                **series,
                "runs": len(group),
                "reporting": len(own),
                "candidates": int(own["candidates"].sum()),
                "gap": mean(means["percentile_gap"].dropna().tolist()),
                "regret": mean(means["percentile_regret"].dropna().tolist()),
                "medals_lost": int(own["medal_lost"].sum()),
            }
        )
    return pd.DataFrame(rows, columns=_TOTALS)


def _pairs_of(
    handed_in: Sequence[Mapping[Any, Any]], history: Sequence[Mapping[Any, Any]], grade: Mapping[Any, Any]
) -> Iterator[dict[str, Any]]:
    for place, each in enumerate(handed_in):
        final = place + 1 == len(handed_in)
        after = math.inf if final else handed_in[place + 1]["at_seconds"]
        between = [one for one in history if each["at_seconds"] - SLACK <= one["at_seconds"] < after - SLACK]
        test = grade if final else between[-1] if between else None
        if test is not None and bool(test["valid_submission"]) and not pd.isna(test["score"]):
            scores = {"own_score": float(each["own_score"]), "test_score": float(test["score"])}
            medal = bool(test["any_medal"])
            yield {"at_seconds": float(each["at_seconds"]), **scores, "any_medal": medal, "final": final}


def _by_run(table: pd.DataFrame) -> dict[tuple[str, str], list[dict[Any, Any]]]:
    """The rows of each run, in the order of time."""
    found: dict[tuple[str, str], list[dict[Any, Any]]] = {}
    for row in table.sort_values("at_seconds", kind="stable").to_dict("records") if len(table) else ():
        found.setdefault((row["run_group"], row["run_id"]), []).append(row)
    return found


def _same(snapshot: Mapping[Any, Any], grade: Mapping[Any, Any]) -> bool:
    """Whether both are of one edition. A snapshot that does not state its own is of any."""
    edition = snapshot.get("edition")
    return edition is None or pd.isna(edition) or edition == grade["edition"]


def percentiles_over_time(
    found: pd.DataFrame, percentiles: Mapping[str, Sequence[float]], times: Sequence[float]
) -> pd.DataFrame:
    """Columns of the series, `at_seconds`, `own`, `test`: mean human percentile of the newest submitted candidate.

    `found` are `pairs`. The mean is over the runs with any pair in a competition with a known leaderboard; a run counts
    0 in both columns before its first candidate.
    """
    rows: list[dict[str, Any]] = []
    boards = {name for name, points in percentiles.items() if len(points) > 1 and points[0] != points[-1]}
    known = found[found["competition_id"].isin(boards)]
    for series, part in by_series(known) if len(known) else ():
        runs: dict[str, list[tuple[float, dict[str, float]]]] = {}
        for row in part.sort_values("at_seconds", kind="stable").to_dict("records"):
            points = percentiles[row["competition_id"]]
            shares = {name: human_percentile(row[f"{name}_score"], points) for name in ("own", "test")}
            runs.setdefault(row["run_id"], []).append((row["at_seconds"], shares))
        for moment in times:
            newest = [[shares for at, shares in run if at <= moment][-1:] for run in runs.values()]
            columns = {name: mean([each[0][name] if each else 0.0 for each in newest]) for name in ("own", "test")}
            rows.append({**series, "at_seconds": moment, **columns})
    return pd.DataFrame(rows, columns=[*SERIES, "at_seconds", "own", "test"])
