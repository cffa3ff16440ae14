"""Checks of an agent's own truth, which is as untrusted as its predictions, and which row of either file is wrong.

Graders trust the answers. A truth that is not as `competitions.truth` says would make them fail, or score nonsense.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from competitions.facts import SubmittedColumn, TruthColumn
from competitions.scoring.checks import require_columns
from competitions.scoring.errors import InvalidSubmission

_NUMERIC = ("0 or 1", "one", "number", "whole number")
_MOST_CHARACTERS = 40


def check_truth(table: pd.DataFrame, columns: Mapping[str, TruthColumn]) -> pd.DataFrame:
    """The columns of a truth. Raises `InvalidSubmission`, with the first wrong row, if it does not have its form."""
    require_columns(table, *columns)
    if table.columns.duplicated().any():
        raise InvalidSubmission(f"Column `{table.columns[table.columns.duplicated()][0]}` is there twice.")
    if table.empty:
        raise InvalidSubmission("There are no rows.")
    for name, column in columns.items():
        row, problem = _first_problem(table[name], column)
        if row is not None:
            raise InvalidSubmission(f"Row {row + 1}: `{name}` {problem}.")
    return table[list(columns)]


def _first_problem(cells: pd.Series, column: TruthColumn) -> tuple[int | None, str]:
    """The position of the first cell that is not as the column must be, and what is wrong; None if all are right."""
    empty = cells.isna().to_numpy(dtype=bool)
    if not column.empty and empty.any():
        return int(empty.argmax()), "is empty"
    if column.values not in _NUMERIC:
        return None, ""
    numbers = as_numbers(cells)
    low, high = (0, 1) if column.values in ("0 or 1", "one") else (column.low, column.high)
    wrong = ~np.isfinite(numbers)
    if column.values != "number":
        wrong |= numbers != np.trunc(numbers)
    wrong |= numbers < (-np.inf if low is None else low)
    wrong |= numbers > (np.inf if high is None else high)
    wrong &= ~empty
    if not wrong.any():
        return None, ""
    kind = {"number": "a number", "whole number": "a whole number"}.get(column.values, "0 or 1")
    bounds = "" if kind == "0 or 1" else _bounds(low, high)
    return (row := int(wrong.argmax())), f"is {shown(cells.iloc[row])}; it must be {kind}{bounds}"


def wrong_row(table: Any, truth: Any, ids: list[str], submitted: Mapping[str, SubmittedColumn]) -> str:
    """Where predictions that a grader has rejected are wrong, as far as that can be told; an empty text otherwise.

    Args:
        table: the predictions.
        truth: the truth.
        ids: the columns that identify rows in both.
        submitted: what `competition.yaml` says of submissions.
    """
    if not isinstance(table, pd.DataFrame) or not isinstance(truth, pd.DataFrame):
        return ""
    ids = [name for name in ids if name in table and name in truth]
    if ids:
        keys, true_keys = (pd.MultiIndex.from_frame(frame[ids].astype(object)) for frame in (table, truth))
        for wrong, words in (
            (~keys.isin(true_keys), "is not in TRUTH"),
            (keys.duplicated() & ~true_keys.duplicated().any(), "is there twice"),
        ):
            if wrong.any():
                row = int(wrong.argmax())
                return f"row {row + 1} of PREDICTIONS, {_named(table, ids, row)}, {words}"
        missing = ~true_keys.isin(keys)
        if missing.any():
            row = int(missing.argmax())
            return f"row {row + 1} of TRUTH, {_named(truth, ids, row)}, is not in PREDICTIONS"
    for name, column in submitted.items():
        if name in table and column.numeric:
            numbers = as_numbers(table[name])
            low, high = (-np.inf if column.low is None else column.low, np.inf if column.high is None else column.high)
            wrong = ~np.isfinite(numbers) | (numbers < low) | (numbers > high)
            if wrong.any():
                row = int(wrong.argmax())
                return f"row {row + 1} of PREDICTIONS: `{name}` is {shown(table[name].iloc[row])}"
    return ""


def as_numbers(cells: pd.Series) -> NDArray[np.float64]:
    """The cells as numbers, with NaN for what is none."""
    if isinstance(cells.dtype, np.dtype) and cells.dtype.kind in "iufb":
        return cells.to_numpy(dtype=np.float64)
    return np.asarray(pd.to_numeric(cells.astype(object), errors="coerce"), dtype=np.float64)


def shown(value: object) -> str:
    """A cell for a message: short, and on one line."""
    text = repr(value.item() if isinstance(value, np.generic) else value)
    return "empty" if text in ("nan", "None", "<NA>") else text if len(text) <= _MOST_CHARACTERS else f"{text[:37]}..."


def _named(table: pd.DataFrame, ids: list[str], row: int) -> str:
    return ", ".join(f"`{name}` {shown(table[name].iloc[row])}" for name in ids)


def _bounds(low: float | None, high: float | None) -> str:
    if low is not None and high is not None:
        return f" from {low:g} to {high:g}"
    return f", at least {low:g}" if low is not None else ""
