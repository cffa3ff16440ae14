"""How the headline depends on decisions: each row makes one of them differently."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import replace
from typing import Any

import pandas as pd

from grading.statistics.counting import Counting, cells_of
from grading.statistics.seeds import mean
from grading.statistics.series import RATES, SERIES, by_series

COLUMNS = [*SERIES, "variant", "split", "mean", "seeds", "competitions"]


def sensitivity(
    grades: pd.DataFrame,
    runs: pd.DataFrame | None,
    counting: Counting,
    leaks: Mapping[str, Collection[str]],
    findings: Collection[tuple[str, str]],
) -> pd.DataFrame:
    """Any-medal rates by series, variant and split. Editions are series of their own, and are compared by the reader.

    Variants: `available` counts the graded runs of each competition, `excluded` leaves seeds with ungraded runs out,
    `padded` counts what is ungraded as a failure, `no leaks` leaves out competitions with known leaks, and
    `no findings` counts runs with an examination finding as failures. The last two treat ungraded runs as `counting`
    says.

    Args:
        grades: the graded submissions.
        runs: the table of runs.
        counting: how runs are counted.
        leaks: competitions whose data or files reveal answers, by edition.
        findings: (run group, run id) of the runs that a person should look at.
    """
    rows: list[dict[str, Any]] = []
    if grades.empty:
        return pd.DataFrame(columns=COLUMNS)
    for series, part in by_series(grades):
        own = runs
        if runs is not None and len(runs):
            own = runs[(runs["run_group"] == series["run_group"]) & (runs["agent"] == series["agent"])]
        for variant, table, ran, how in _variants(part, own, counting, leaks.get(series["edition"], ()), findings):
            if table.empty:
                continue
            for cells in cells_of(table, ran, how):
                outcomes = cells.outcomes("any_medal")
                figures = {"mean": mean([mean(runs) for runs in outcomes.values()]), "seeds": len(cells.counted_seeds)}
                rows.append({**cells.label, "variant": variant, **figures, "competitions": len(outcomes)})
    return pd.DataFrame(rows, columns=COLUMNS)


def _variants(
    grades: pd.DataFrame,
    runs: pd.DataFrame | None,
    counting: Counting,
    leaking: Collection[str],
    findings: Collection[tuple[str, str]],
) -> Iterator[tuple[str, pd.DataFrame, pd.DataFrame | None, Counting]]:
    yield "available", grades, runs, replace(counting, incomplete="available")
    yield "excluded", grades, runs, replace(counting, incomplete="exclude")
    yield "padded", grades, runs, replace(counting, incomplete="fail")
    known = set(leaking)
    expected = counting.expected
    if expected is not None:
        expected = {name: split for name, split in expected.items() if name not in known}
    kept = [
        table if table is None or table.empty else table[~table["competition_id"].isin(known)]
        for table in (grades, runs)
    ]
    assert kept[0] is not None
    yield "no leaks", kept[0], kept[1], replace(counting, expected=expected)
    flagged = [pair in findings for pair in zip(grades["run_group"], grades["run_id"], strict=True)]
    failed = grades.copy()
    failed.loc[flagged, list(RATES)] = False
    yield "no findings", failed, runs, counting
