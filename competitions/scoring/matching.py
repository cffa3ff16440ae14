"""Find the rows of a submission by the ids of the answers, without sorting them as Python objects."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from competitions.tables.arrays import order_as, ordered, whole

if TYPE_CHECKING:
    import pyarrow as pa


def positions_among(submitted: pd.Series, expected: pd.Series) -> NDArray[np.intp] | None:
    """Like `positions`, but only for text; `submitted` may have other ids as well, which may repeat."""
    submitted_texts, expected_texts = strings(submitted), strings(expected)
    return None if submitted_texts is None or expected_texts is None else _of_texts(submitted_texts, expected_texts)


def positions(submitted: pd.Series, expected: pd.Series) -> NDArray[np.intp] | None:
    """For each expected id its position among the submitted ones, shape (n,).

    The result is None if the two are not permutations of each other, if ids repeat, or if they are neither whole
    numbers nor text on both sides. Callers then compare them in another way, which also determines what is wrong.
    """
    if len(submitted) != len(expected):
        return None
    if submitted.dtype.kind in "iu" and expected.dtype.kind in "iu" and isinstance(submitted.dtype, np.dtype):
        return _of_numbers(submitted.to_numpy(), expected.to_numpy())
    submitted_texts, expected_texts = strings(submitted), strings(expected)
    return None if submitted_texts is None or expected_texts is None else _of_texts(submitted_texts, expected_texts)


def are_alike(submitted: pd.Series, expected: pd.Series) -> bool:
    """Whether both are the same whole numbers in ascending order. The comparison needs no further memory.

    >>> are_alike(pd.Series([1, 2]), pd.Series([1, 2])), are_alike(pd.Series([2, 1]), pd.Series([2, 1]))
    (True, False)
    """
    if not all(isinstance(ids.dtype, np.dtype) and ids.dtype.kind in "iu" for ids in (submitted, expected)):
        return False
    submitted_numbers, expected_numbers = submitted.to_numpy(), expected.to_numpy()
    is_sorted = bool((expected_numbers[1:] > expected_numbers[:-1]).all())
    return is_sorted and np.array_equal(submitted_numbers, expected_numbers)


def ascending(ids: pd.Series) -> NDArray[np.intp] | None:
    """The positions of texts or whole numbers in ascending order, shape (n,). Arrow sorts texts faster than Python.

    The result is None if an id repeats, because the order of its rows is uncertain, or if an id is neither.

    >>> ascending(pd.Series(["b", "é", "a"])), ascending(pd.Series(["b", "b"])), ascending(pd.Series(["b", 1]))
    (array([2, 0, 1]), None, None)
    """
    if isinstance(ids.dtype, np.dtype) and ids.dtype.kind in "iu":
        positions_of_ids, sorted_ids = ordered(ids.to_numpy())
        return None if (sorted_ids[1:] == sorted_ids[:-1]).any() else positions_of_ids
    import pyarrow.compute as pc

    texts = strings(ids)
    if texts is None:
        return None
    order = pc.sort_indices(texts)  # by bytes of UTF-8, whose order is that of code points
    ordered_texts = texts.take(order)
    if pc.any(pc.equal(ordered_texts[1:], ordered_texts[:-1])).as_py():
        return None
    rows: NDArray[np.intp] = order.to_numpy().astype(np.intp)
    return rows


def strings(values: pd.Series) -> pa.Array | None:
    """A column of text as an Arrow array; None if a value is missing or not text."""
    import pyarrow as pa

    if isinstance(values.dtype, pd.ArrowDtype) and pa.types.is_string(values.dtype.pyarrow_dtype):
        column = values.array.__arrow_array__()
    elif values.dtype == object:
        try:
            column = pa.array(values.to_numpy(), type=pa.string(), from_pandas=False)
        except (pa.ArrowException, UnicodeError):
            return None
    else:
        return None
    if isinstance(column, pa.ChunkedArray):
        column = whole(column) if column.nbytes < 1 << 31 else None
    return None if column is None or column.null_count else column


def plain(table: pd.DataFrame) -> pd.DataFrame:
    """The table as pandas reads it: with Python strings in place of Arrow's, and NaN for missing strings."""
    text_columns = {}
    for position, kind in enumerate(table.dtypes):  # converts text only: an agent's table may have many other columns
        if isinstance(kind, pd.ArrowDtype):
            text = table.iloc[:, position].astype(object)
            text_columns[str(table.columns[position])] = text.where(text.notna(), np.nan)
    return table.assign(**text_columns)


def _of_numbers(given: NDArray[Any], wanted: NDArray[Any]) -> NDArray[np.intp] | None:
    if (wanted[1:] > wanted[:-1]).all():  # answers are often ascending, and then need no sorting
        if np.array_equal(given, wanted):
            return np.arange(len(wanted))
        return order_as(given, wanted)
    given_order, sorted_given = ordered(given)
    order, wanted_ascending = ordered(wanted)
    if (sorted_given != wanted_ascending).any() or (sorted_given[1:] == sorted_given[:-1]).any():
        return None
    positions_of_wanted = np.empty(len(order), dtype=np.intp)
    positions_of_wanted[order] = given_order
    return positions_of_wanted


def _of_texts(given: pa.Array, wanted: pa.Array) -> NDArray[np.intp] | None:
    """For each wanted text its position among the given texts; None unless each is wanted once and given once."""
    import pyarrow.compute as pc

    codes = pc.index_in(given, value_set=wanted).to_numpy(zero_copy_only=False)
    matched = np.flatnonzero(~np.isnan(codes)) if codes.dtype.kind == "f" else np.arange(len(codes))
    codes = codes[matched].astype(np.intp)
    if len(codes) != len(wanted) or (np.bincount(codes, minlength=len(wanted)) != 1).any():
        return None
    rows = np.empty(len(wanted), dtype=np.intp)
    rows[codes] = matched
    return rows
