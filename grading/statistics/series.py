"""Series and splits: how rows of the table `grades` are grouped for all statistics."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, cast

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
    table = grades.assign(seed=grades["seed"].astype(object).where(grades["seed"].notna(), grades["run_id"]))
    if "created_at" in table:
        table = table.assign(_when=pd.to_datetime(table["created_at"], utc=True, format="ISO8601"))
        table = table.sort_values("_when", kind="stable", na_position="first").drop(columns="_when")
    return table.drop_duplicates([*SERIES, "competition_id", "seed"], keep="last").reset_index(drop=True)


def by_series(grades: pd.DataFrame) -> Iterator[tuple[dict[str, str], pd.DataFrame]]:
    """Yield each series of `grades`, as column -> value, with its rows, in sorted order."""
    for key, group in grades.groupby(SERIES, sort=True, dropna=False):
        yield dict(zip(SERIES, cast("tuple[str, ...]", key), strict=True)), group


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
