"""The newest grades, and the series of a table, are those that pandas finds, whatever is missing or there twice."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pandas as pd
import pytest
from pandas.testing import assert_frame_equal

from grading.statistics.series import RATES, SERIES, by_series, latest_grades

MOMENTS = ("2026-01-02T00:00:00.123456+00:00", "2026-01-01T00:00:00+00:00", "2025-12-31T23:00:00-05:00", None)


def grades(draw: random.Random, *, missing: bool = True) -> pd.DataFrame:
    rows = draw.randint(0, 30)
    columns: dict[str, list[Any]] = {
        "run_group": ["g", "h"],
        "agent": ["a", "b", *[None] * missing],
        "edition": ["v1", "v2", *[np.nan] * missing],
        "competition_id": ["x", "y", "z"],
        "seed": [0, 1, 2, *[None] * missing],
        "outcome": ["valid", "failed"],
        **{rate: [True, False] for rate in RATES},
    }
    if draw.random() < 0.8:
        columns["created_at"] = [*MOMENTS]
    table = pd.DataFrame({name: [draw.choice(values) for _ in range(rows)] for name, values in columns.items()})
    table["run_id"] = [f"run {number}" for number in range(rows)]
    kinds: dict[str, list[Any]] = {"seed": ["Int64"], "agent": ["string", "category"]}
    return table.astype({name: draw.choice(kind) for name, kind in kinds.items() if draw.random() < 0.3})


def by_pandas(table: pd.DataFrame) -> pd.DataFrame:
    table = table.assign(seed=table["seed"].astype(object).where(table["seed"].notna(), table["run_id"]))
    if "created_at" in table:
        when = pd.to_datetime(table["created_at"], utc=True, format="ISO8601")
        table = table.iloc[when.reset_index(drop=True).sort_values(kind="stable", na_position="first").index]
    return table.drop_duplicates([*SERIES, "competition_id", "seed"], keep="last").reset_index(drop=True)


@pytest.mark.parametrize("number", range(100))
def test_the_newest_grades(number: int) -> None:
    table = grades(random.Random(number)).rename(index=lambda place: 1000 - place)
    before = table.copy()
    assert_frame_equal(latest_grades(table), by_pandas(table))
    assert_frame_equal(table, before)


@pytest.mark.parametrize("number", range(50))
def test_the_series(number: int) -> None:
    draw = random.Random(number)
    table = grades(draw, missing=draw.random() < 0.5).astype({"agent": object})
    if number % 2:
        table = table.assign(**{name: draw.choice("xyz") for name in SERIES})  # one series
    expected = list(table.groupby(SERIES, sort=True, dropna=False))
    found = list(by_series(table))
    assert [repr(tuple(series.values())) for series, _ in found] == [repr(key) for key, _ in expected]
    for (_, rows), (_, wanted) in zip(found, expected, strict=True):
        assert_frame_equal(rows, wanted)
