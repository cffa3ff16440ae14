"""Build the view from the tables: join grades with runs, fill in missing values, clean text written by agents."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence, Set
from typing import Any

import pandas as pd

from common.cleaning import clean
from grading.medals import Thresholds, human_percentile
from grading.page.view import CompetitionView, Result, Series, View
from grading.statistics.counting import Facts
from grading.statistics.series import SERIES, latest_grades, seed_order, split_order
from grading.words import kind_of


def build_view(
    grades: pd.DataFrame,
    runs: pd.DataFrame | None = None,
    *,
    thresholds: Mapping[str, Thresholds] | None = None,
    percentiles: Mapping[str, Sequence[float]] | None = None,
    titles: Mapping[str, str] | None = None,
    facts: Facts | None = None,
    ranked: Sequence[tuple[str, ...]] = (),
) -> View:
    """The view of the tables `grades` and `runs`: the newest grade of each run, and runs without a grade.

    Competitions that are missing in `thresholds` use the thresholds in their grades. `facts` has complexity and
    category of competitions without a grade. Series stand in the order of `ranked` (run group, agent, edition), others
    after them.
    """
    graded = [_plain(row) for row in latest_grades(grades).to_dict("records")]
    by_run = {(row["run_group"], row["run_id"]): row for row in map(_plain, _records(runs))}
    seen = {
        (row["run_group"], row["run_id"]) for row in map(_plain, grades[["run_group", "run_id"]].to_dict("records"))
    }
    rows = graded + [{**run, "outcome": None} for key, run in by_run.items() if key not in seen]
    told = {
        key for row in [*graded, *by_run.values()] if row.get("feedback") for key in [(row["run_group"], row["run_id"])]
    }
    series = _series(rows, ranked, told)
    by_key = {(s.run_group, s.agent, s.edition): s for s in series}

    competitions = []
    for competition_id in {row["competition_id"]: None for row in rows}:
        own = [row for row in rows if row["competition_id"] == competition_id]
        known = next((row for row in own if row["outcome"] is not None), {})
        stated = (thresholds or {}).get(competition_id) or _stored_thresholds(known)
        points = (percentiles or {}).get(competition_id)
        known = {**(facts or {}).get(competition_id, {}), **known}
        results = {}
        for row in own:
            one = by_key[row["run_group"], row["agent"], row["edition"]]
            run = by_run.get((row["run_group"], row["run_id"]), {})
            results[one.index, row["seed"]] = _result(row, run, one, points)
        competitions.append(
            CompetitionView(
                id=competition_id,
                title=(titles or {}).get(competition_id, competition_id),
                complexity=known.get("complexity") or "unknown",
                category=known.get("category") or "",
                thresholds=stated,
                percentiles=points,
                results=results,
            )
        )
    competitions.sort(key=lambda c: (split_order(c.complexity), c.id.lower()))
    return View(tuple(series), tuple(competitions))


def _records(runs: pd.DataFrame | None) -> list[dict[Any, Any]]:
    if runs is None or runs.empty:
        return []
    order = [column for column in ("started_at", "finished_at") if column in runs]
    return (runs.sort_values(order, kind="stable") if order else runs).to_dict("records")


def _plain(row: Mapping[Any, Any]) -> dict[str, Any]:
    """A table's row with cleaned text, and with None for missing values, except for the score, which may be NaN."""

    def value(name: str, cell: Any) -> Any:
        if isinstance(cell, str):
            return clean(cell)
        if cell is None or (name != "score" and pd.isna(cell)):
            return None
        return int(cell) if name == "seed" else cell

    return {str(name): value(str(name), cell) for name, cell in row.items()}


def _series(
    rows: Sequence[Mapping[str, Any]], ranked: Sequence[tuple[str, ...]], told: Set[tuple[str, str]]
) -> list[Series]:
    """The series of the rows; `told` are the runs (run group, run id) with feedback."""
    places = {key: place for place, key in enumerate(ranked)}
    found = {tuple(str(row[column]) for column in SERIES) for row in rows}
    keys = sorted(found, key=lambda key: (places.get(key, len(places)), key))
    series = []
    for index, (run_group, agent, edition) in enumerate(keys):
        label = agent
        if sum(other[1] == agent for other in keys) > 1:
            label += f" · {run_group}"
        if sum(other[:2] == (run_group, agent) for other in keys) > 1:
            label += f" · {edition}"
        mine = [row for row in rows if (row["run_group"], row["agent"], row["edition"]) == (run_group, agent, edition)]
        seeds = tuple(sorted({row["seed"] for row in mine}, key=seed_order))
        feedback = any((run_group, row["run_id"]) in told for row in mine)
        label += " · feedback" * feedback
        series.append(Series(index, run_group, agent, edition, label, seeds, feedback))
    return series


def _stored_thresholds(row: Mapping[str, Any]) -> Thresholds | None:
    names = ("gold", "silver", "bronze", "median")
    values = [row.get(f"{name}_threshold") for name in names]
    if any(value is None for value in values):
        return None
    gold, silver, bronze, median = (float(value) for value in values if value is not None)
    return Thresholds(gold, silver, bronze, median, teams=0, lower_is_better=bool(row.get("is_lower_better")))


def _result(
    row: Mapping[str, Any], run: Mapping[str, Any], series: Series, percentiles: Sequence[float] | None
) -> Result:
    score = row.get("score") if row.get("valid_submission") else None
    if row.get("valid_submission") and score is None:
        score = math.nan  # a table read back from Parquet or JSON may have turned NaN into null
    messages = dict.fromkeys(text for text in (row.get("message"), run.get("message")) if text)
    return Result(
        competition_id=row["competition_id"],
        series=series,
        seed=row["seed"],
        kind=kind_of(row),
        score=None if score is None else float(score),
        percentile=human_percentile(score, percentiles),
        message="\n".join(messages) or None,
        status=run.get("status"),
        duration=_elapsed(run.get("duration_seconds")),
        time_limit=run.get("time_limit_seconds"),
        run_id=row.get("run_id") or "",
    )


def _elapsed(seconds: Any) -> float | None:
    """A duration; None for a negative one, of a clock that was set back."""
    return float(seconds) if seconds is not None and seconds >= 0 else None
