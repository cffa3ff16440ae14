"""Checks of a submission's cells. Each function checks columns and returns their values in the form a metric needs.

All functions raise `InvalidSubmission` with a one-line message for the agent. The columns must exist, see
`competitions.scoring.checks`. Where numbers are expected, True and False count as 1 and 0.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray

from competitions.scoring import matching
from competitions.scoring.errors import InvalidSubmission
from competitions.tables.arrays import MANY, whole

if TYPE_CHECKING:
    import pyarrow as pa

Columns = str | Sequence[str]
_LONG_EXPONENT = re.compile(r"[eE][+-]?[0-9]{4}")
_MIN_LONG_ROWS = 2_000  # from this many rows on, copying a column costs as much as finding it in the frame


def numbers(
    frame: pd.DataFrame,
    columns: Columns,
    *,
    low: float = -np.inf,
    high: float = np.inf,
    missing: bool = False,
    infinite: bool = False,
) -> NDArray[np.float64]:
    """One column as float64 of shape (n,), or several as (n, k).

    Rejects text, empty cells unless `missing`, infinities unless `infinite`, and numbers outside [`low`, `high`].
    """
    if not isinstance(columns, str):
        options: dict[str, Any] = {"low": low, "high": high, "missing": missing, "infinite": infinite}
        at_once = _matrix(frame, columns)
        matrix = np.empty((len(frame), len(columns))) if at_once is None else at_once
        numeric = True
        for position, name in enumerate(columns if at_once is None else ()):
            column = frame[name]
            numeric = numeric and isinstance(column.dtype, np.dtype) and column.dtype.kind in "iufb"
            matrix[:, position] = column.to_numpy() if numeric else numbers(frame, name, **options)
        if numeric and _are_within(matrix, low, high, infinite):
            return matrix
        for position, name in enumerate(columns):  # this raises the error that names the wrong column
            matrix[:, position] = numbers(frame, name, **options)
        return matrix
    values = _to_float(frame[columns])
    empty = np.isnan(values)
    if not missing and empty.any():
        raise InvalidSubmission(f"`{columns}` has {_count(empty, 'empty cell')}; every row needs a number.")
    if not infinite and np.isinf(values).any():
        raise InvalidSubmission(
            f"`{columns}` has {_count(np.isinf(values), 'infinite number')}; every row needs a finite one."
        )
    outside = (values < low) | (values > high)
    if outside.any():
        bounds = f"below {low:g}" if high == np.inf else f"outside [{low:g}, {high:g}]"
        raise InvalidSubmission(f"`{columns}` has {_count(outside, 'cell')} {bounds}, such as {values[outside][0]:g}.")
    return values


def surely_numbers(frame: pd.DataFrame, columns: Sequence[str], *, low: float = -np.inf, high: float = np.inf) -> bool:
    """Whether `numbers` certainly accepts all of these columns. Many short columns are checked at once.

    >>> table = pd.DataFrame(0.5, index=range(3), columns=[f"p{number}" for number in range(30)])
    >>> surely_numbers(table, table.columns, low=0, high=1), surely_numbers(table, table.columns, low=1)
    (True, False)
    """
    matrix = _matrix(frame, columns)
    return matrix is not None and _are_within(matrix, low, high, infinite=False)


def require_numeric(frame: pd.DataFrame, *columns: str, booleans: bool = True) -> None:
    """Require that pandas read each of `columns` as numbers, without any text, for graders that depend on the type.

    A column of True and False passes unless `booleans` is False.
    """
    wrong = [name for name in columns if frame[name].dtype.kind not in ("iufb" if booleans else "iuf")]
    if wrong:
        raise InvalidSubmission(f"`{wrong[0]}` must hold numbers, and nothing else, in every row.")


def probabilities(frame: pd.DataFrame, columns: Columns) -> NDArray[np.float64]:
    """Numbers within [0, 1]: one column as (n,), several as (n, k)."""
    return numbers(frame, columns, low=0, high=1, infinite=True)


def probability_rows(frame: pd.DataFrame, columns: Sequence[str], decimals: int | None = None) -> NDArray[np.float64]:
    """Numbers within [0, 1], every row summing to 1, of shape (n, k). For `decimals` see `require_row_sums`."""
    values = probabilities(frame, columns)
    require_row_sums(values, decimals)
    return values


def rescaled_rows(frame: pd.DataFrame, columns: Sequence[str]) -> NDArray[np.float64]:
    """Non-negative numbers of shape (n, k), with every row divided by its sum. Rejects rows of zeros."""
    values = numbers(frame, columns, low=0)
    sums = values.sum(axis=1, keepdims=True)
    if (sums == 0).any():
        raise InvalidSubmission(f"{_count(sums == 0, 'row')} of zeros only; every row needs a positive number.")
    return values / sums


def require_row_sums(values: NDArray[np.float64], decimals: int | None = None) -> None:
    """Require that every row of the matrix (n, k) sums to 1: within 1.1e-5, or exactly after rounding to `decimals`.

    Rows with NaN are skipped.
    """
    sums = np.nansum(values, axis=1)
    is_one = np.isclose(sums, 1, rtol=1e-5, atol=1e-6) if decimals is None else np.round(sums, decimals) == 1
    is_wrong = ~is_one
    if is_wrong.any():
        example = f"{_count(is_wrong, 'row')} with another sum, such as {sums[is_wrong][0]:.8g}"
        raise InvalidSubmission(f"The probabilities of every row must sum to 1; found {example}.")


def whole_numbers(frame: pd.DataFrame, column: str) -> NDArray[Any]:
    """Class numbers: integers, or floats without a fraction. Rejects fractions, text, empty cells and infinities.

    Numbers beyond 64 bits are rejected as well, because scikit-learn 1.5 treats such floats as continuous and pandas
    reads such integers as text.
    """
    values = _plain(frame[column])
    if values.dtype.kind in "iu":
        return values.to_numpy()
    floats = numbers(frame, column)
    if (np.abs(floats) >= 2.0**63).any():
        raise InvalidSubmission(f"`{column}` must hold classes; {floats[np.abs(floats).argmax()]:g} is far too large.")
    fractions = floats != np.trunc(floats)
    if fractions.any():
        raise InvalidSubmission(
            f"`{column}` must hold classes; it has {_count(fractions, 'fraction')}, such as {floats[fractions][0]:g}."
        )
    return floats.astype(np.int64)


def integers(frame: pd.DataFrame, column: str) -> NDArray[np.int64]:
    """Convert every cell with Python's `int`: fractions are truncated towards zero, text must be an integer.

    Rejects empty cells, infinities, other text, and numbers beyond 64 bits, which scikit-learn 1.5 does not accept as
    classes.
    """
    values = _plain(frame[column])
    if values.dtype.kind in "ib":
        return values.to_numpy() + 0
    if values.dtype.kind == "f":
        numbers(frame, column)
    try:
        return np.array([int(cell) for cell in values.tolist()], dtype=np.int64)
    except (ValueError, OverflowError, TypeError) as error:
        raise InvalidSubmission(f"`{column}` must hold one whole number in every row: {error}.") from error


def labels(frame: pd.DataFrame, column: str, truth: ArrayLike, *, strict: bool = False) -> NDArray[Any]:
    """Predicted classes, for a comparison with `truth` (whole numbers, booleans or text) by `accuracy`.

    The rules are those of scikit-learn 1.5's `accuracy_score`. They reject empty cells, infinities, fractions, a
    mixture of text and other values, and text against numbers if both have at most two distinct values. Otherwise text
    against numbers is accepted and equals nothing, so the accuracy is 0; `strict` rejects this as well.
    """
    values, true = _plain(frame[column]), np.asarray(truth)
    empty = values.isna()
    if empty.any():
        raise InvalidSubmission(f"`{column}` has {_count(empty, 'empty cell')}; every row needs a label.")
    if values.dtype.kind in "iufb":
        predicted = values.to_numpy() if values.dtype.kind == "b" else whole_numbers(frame, column)
    else:
        predicted = np.array(texts(frame, column), dtype=object)
    if _is_text(predicted) != _is_text(true):
        both_binary = len(np.unique(true)) <= 2 and len(np.unique(predicted)) <= 2
        if strict or both_binary:
            kind = "text" if _is_text(true) else "true or false" if true.dtype.kind == "b" else "whole numbers"
            raise InvalidSubmission(f"`{column}` must hold {kind}, as the labels of the training data.")
    return predicted


def texts(frame: pd.DataFrame, column: str, *, missing: str | None = None) -> list[str]:
    """A column of text as a list. Empty cells become `missing`, or are rejected if that is None.

    Rejects a column that pandas read as numbers or booleans. A column of empty cells counts as empty text.
    """
    cells: list[str] = strings(frame, column, missing=missing).to_pylist()
    return cells


def strings(frame: pd.DataFrame, column: str, *, missing: str | None = None) -> pa.StringArray:
    """Like `texts`, but as an Arrow array without nulls, for metrics that work on whole columns."""
    import pyarrow as pa

    values = frame[column]
    empty = values.isna().to_numpy()
    if missing is not None and isinstance(values.dtype, pd.ArrowDtype):
        values, empty = values.fillna(missing), np.zeros(1, dtype=bool)
    if missing is None and empty.any():
        raise InvalidSubmission(f"`{column}` has {_count(empty, 'empty cell')}; every row needs text.")
    if missing is not None and empty.any():
        values = values.astype(object).where(~empty, missing)
    array = matching.strings(values)
    if array is None and len(values):
        if not all(isinstance(cell, str) for cell in values.tolist()):
            raise InvalidSubmission(f"`{column}` must hold text; all its cells are read as numbers or booleans.")
        array = pa.array(values.tolist(), type=pa.large_string())
    return pa.array([], pa.string()) if array is None else array


def choices(frame: pd.DataFrame, column: str, allowed: Collection[str]) -> list[str]:
    """A column of text as a list. Every cell must be one of `allowed`."""
    cells = texts(frame, column)
    unknown = [cell for cell in cells if cell not in allowed]
    if unknown:
        raise InvalidSubmission(f"`{column}` holds {unknown[0][:40]!r}, not one of the {len(allowed)} classes.")
    return cells


def as_text(frame: pd.DataFrame, column: str) -> list[str]:
    """Every cell as text, as pandas formats it; nothing is rejected.

    An empty cell is "nan". A number depends on the inferred type: `7` among integers, `7.0` if a cell is empty.
    """
    values = frame[column]
    if isinstance(values.dtype, pd.ArrowDtype):
        cells: list[str] = as_strings(frame, column).to_pylist()
        return cells
    return [str(cell) for cell in values.tolist()]


def as_strings(frame: pd.DataFrame, column: str) -> pa.Array:
    """Like `as_text`, but as an Arrow array, for metrics that work on whole columns."""
    import pyarrow as pa
    import pyarrow.compute as pc

    values = frame[column]
    if isinstance(values.dtype, pd.ArrowDtype):
        column_of_text = values.array.__arrow_array__()
        if column_of_text.null_count:
            column_of_text = pc.fill_null(column_of_text, "nan")
        return whole(column_of_text) if isinstance(column_of_text, pa.ChunkedArray) else column_of_text
    if isinstance(values.dtype, np.dtype) and values.dtype.kind in "iu":
        return pa.array(values.to_numpy()).cast(pa.string())
    array = matching.strings(values)
    return pa.array(as_text(frame, column), type=pa.string()) if array is None else array


def joined(frame: pd.DataFrame, *columns: str) -> pd.Series:
    """The cells of several columns as text, as in `as_text`, joined by blanks to a key of each row, as Arrow strings.

    >>> joined(pd.DataFrame({"id": ["a", np.nan], "class": [7, 8]}), "id", "class").tolist()
    ['a 7', 'nan 8']
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    keys = pc.binary_join_element_wise(*(as_strings(frame, name) for name in columns), " ")
    return pd.Series(pd.arrays.ArrowExtensionArray(pa.chunked_array([keys])), frame.index)


def _are_within(values: NDArray[np.float64], low: float, high: float, infinite: bool) -> bool:
    """Whether no value is missing, outside the range, or infinite (unless `infinite`)."""
    lowest, highest = (values.min(), values.max()) if values.size else (0.0, 0.0)  # NaN if there is one
    return bool(low <= lowest and highest <= high and (infinite or max(-lowest, highest) < np.inf))


def _matrix(frame: pd.DataFrame, columns: Sequence[str]) -> NDArray[np.float64] | None:
    """The cells of many columns, shape (n, k), without work for each column; None unless all are numbers.

    The result is also None for long columns, because two more copies of the cells exist temporarily.
    """
    if len(columns) < MANY or len(frame) >= _MIN_LONG_ROWS:
        return None
    cells = frame[list(columns)].to_numpy()
    return np.array(cells, np.float64, order="C") if cells.dtype.kind in "iufb" else None


def _to_float(values: pd.Series) -> NDArray[np.float64]:
    values = _plain(values)
    if values.dtype.kind in "iufb":
        return values.to_numpy(dtype=np.float64)
    converted = pd.to_numeric(values.map(_without_long_exponent), errors="coerce")
    text = (converted.isna() & values.notna()).to_numpy()
    if text.any():
        example = repr(str(values[text].iloc[0])[:40])
        raise InvalidSubmission(f"`{values.name}` must hold numbers; it has {_count(text, 'other cell')}: {example}.")
    return converted.to_numpy(dtype=np.float64)


def _without_long_exponent(cell: object) -> object:
    """A number in place of text with an exponent of many digits, for which pandas reads beyond its memory.

    pandas may crash for `0.5e686274509804`. `to_numeric` does not accept numbers beyond the range of floats.
    """
    if not isinstance(cell, str) or not _LONG_EXPONENT.search(cell):
        return cell
    try:
        number = float(cell)
    except ValueError:
        return "no number"
    # pandas, unlike Python, rejects underscores.
    return number if np.isfinite(number) and "_" not in cell else "no number"


def _plain(values: pd.Series) -> pd.Series:
    """The column with Python strings in place of Arrow's, and NaN for their missing values."""
    if not isinstance(values.dtype, pd.ArrowDtype):
        return values
    python_values = values.astype(object)
    return python_values.where(python_values.notna(), np.nan)


def _is_text(values: NDArray[Any]) -> bool:
    return values.dtype.kind in "OUS" and (not values.size or isinstance(values.flat[0], str))


def _count(mask: ArrayLike, noun: str) -> str:
    count = int(np.count_nonzero(mask))
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"
