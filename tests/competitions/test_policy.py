"""The policy of v2 says which column is wrong as if each were checked by itself, in the order in which they stand."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pandas as pd
import pytest

from competitions.facts import SubmittedColumn
from competitions.policy import require_policy
from competitions.scoring.cells import numbers
from grading import InvalidSubmission

LIMITS: list[tuple[float | None, float | None]] = [(None, None), (0, None), (0, 1), (0, 1), (0, 1)]
WRONG: list[Any] = [np.nan, np.inf, -np.inf, -2.0, 7.5, "x", True, None]


def one_by_one(table: pd.DataFrame, columns: dict[str, SubmittedColumn]) -> str | None:
    for name, each in columns.items():
        low, high = (-np.inf if each.low is None else each.low), (np.inf if each.high is None else each.high)
        try:
            if each.numeric:
                numbers(table, name, low=low, high=high)
        except InvalidSubmission as verdict:
            return str(verdict)
    return None


@pytest.mark.parametrize("seed", range(8))
def test_the_first_wrong_column_is_named(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("competitions.scoring.cells.MANY", 2)
    rng, verdicts = random.Random(seed), set()
    for _ in range(60):
        names = [f"c{place}" for place in range(rng.randint(1, 7))]
        columns = {"id": SubmittedColumn(values="id")}
        for name in names:
            low, high = rng.choice(LIMITS)
            columns[name] = SubmittedColumn(values="number", low=low, high=high)
        rows = rng.randint(1, 4)
        cells: dict[str, list[Any]] = {name: [rng.choice([0, 1, 0.5]) for _ in range(rows)] for name in names}
        for name in rng.sample(names, min(len(names), rng.choice([0, 1, 3]))):
            cells[name][rng.randrange(rows)] = rng.choice(WRONG)
        table = pd.DataFrame({name: cells[name] for name in rng.sample(names, len(names))} | {"id": range(rows)})
        expected, found = one_by_one(table, columns), None
        try:
            require_policy(table, columns, None)
        except InvalidSubmission as verdict:
            found = str(verdict)
        assert found == expected
        verdicts.add(found)
    assert None in verdicts
    assert len(verdicts) > 5
