"""Series and splits: how rows of the table `grades` are grouped for all statistics."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, cast

import numpy as np
import pandas as pd

RATES = (
    "any_medal",
    "gold_medal",
    "silver_medal",
    "bronze_medal",
    "above_median",
    "valid_submission",
    "submission_exists",
)
SERIES = ["run_group", "agent", "edition"]  # the columns that identify a series; comparisons show series side by side
BENCHMARK_SPLITS = ("low", "medium", "high")  # the 75 competitions of "all", without dev and demo
SPLITS = (*BENCHMARK_SPLITS, "all", "dev", "demo")


def latest_grades(grades: pd.DataFrame) -> pd.DataFrame:
    """The newest grade of each series, competition and seed. A missing seed is replaced by the run's id.

    Grading a submission again or repeating a run adds a row to the table without replacing the older one. Raises
    ValueError naming the columns that `grades` lacks.
    """
    missing = [
        column for column in (*SERIES, "competition_id", "run_id", "seed", "outcome", *RATES) if column not in grades
    ]
    if missing:
        raise ValueError(f"the table of grades has no column {', '.join(missing)}")
    seeds = grades["seed"].astype(object).where(grades["seed"].notna(), grades["run_id"])
    columns = [*(grades[name] for name in (*SERIES, "competition_id")), seeds]
    keys = list(zip(*map(_comparable, columns), strict=True))
    # A dozen statistics of a page ask, mostly for a few rows: `drop_duplicates` would take several times as long.
    kept: dict[tuple[Any, ...], int] = {}
    for place in reversed(_by_age(grades)):
        kept.setdefault(keys[place], place)
    places = list(kept.values())[::-1]
    return grades.take(places).assign(seed=seeds.take(places)).reset_index(drop=True)


def _by_age(grades: pd.DataFrame) -> Sequence[int]:
    """The places of the rows, the oldest first; rows without a time are older than all others."""
    if "created_at" not in grades:
        return range(len(grades))
    moments = pd.to_datetime(grades["created_at"], utc=True, format="ISO8601").dt.tz_localize(None)
    places: list[int] = moments.to_numpy().view(np.int64).argsort(kind="stable").tolist()
    return places


def _comparable(column: pd.Series) -> list[Any]:
    """The values, with None for all that are missing, which are not equal to each other."""
    return [None if value is pd.NA or value != value else value for value in column.tolist()]


def by_series(grades: pd.DataFrame) -> Iterator[tuple[dict[str, str], pd.DataFrame]]:
    """Yield each series of `grades`, as column -> value, with its rows, in sorted order.

    The rows of the only series are `grades` itself, so they must not be changed.
    """
    values = [set(_comparable(grades[name])) for name in SERIES]
    if all(len(each) == 1 and None not in each for each in values):  # mostly, and grouping takes a millisecond
        yield dict(zip(SERIES, map(set.pop, values), strict=True)), grades
        return
    for key, group in grades.groupby(SERIES, sort=True, dropna=False):
        yield dict(zip(SERIES, cast("tuple[str, ...]", key), strict=True)), group


def runs_of(series: Mapping[str, str], runs: pd.DataFrame | None) -> pd.DataFrame | None:
    """The runs of a series: those of its edition, or all of the group if it has none, as in a regraded group."""
    if runs is None or runs.empty:
        return None
    own = runs[(runs["run_group"] == series["run_group"]) & (runs["agent"] == series["agent"])]
    same = own[own["edition"] == series["edition"]] if "edition" in own else own
    return own if same.empty else same


def by_split(table: pd.DataFrame) -> Iterator[tuple[str, pd.DataFrame]]:
    """Yield the rows of each complexity split, then those of "all", which is low, medium and high together."""
    for split, part in table.groupby("complexity", sort=True):
        yield str(split), part
    benchmark = table[table["complexity"].isin(BENCHMARK_SPLITS)]
    if len(benchmark):
        yield "all", benchmark


def split_order(split: str) -> tuple[int, str]:
    """Sort key of splits: the published order, then any others by name.

    >>> sorted(["image", "all", "low"], key=split_order)
    ['low', 'all', 'image']
    """
    return (SPLITS.index(split) if split in SPLITS else len(SPLITS), split)


def seed_order(seed: Any) -> tuple[bool, Any]:
    """Sort key of seeds: numbers first, then runs without a seed by their id."""
    return (isinstance(seed, str), seed)
