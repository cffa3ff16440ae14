"""Checks of cells that list several things: objects with a label and numbers, and the runs of masks.

All functions raise `InvalidSubmission` with a one-line message for the agent, as in `competitions.scoring.cells`.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from competitions.scoring.cells import strings, texts
from competitions.scoring.errors import InvalidSubmission
from competitions.scoring.metrics.rle_columns import RleMasks, parse_column
from competitions.scoring.metrics.rle_masks import RleMask
from competitions.tables.type_inference import NUMERALS, characters_of

if TYPE_CHECKING:
    import pyarrow as pa


def labelled_numbers(
    frame: pd.DataFrame,
    column: str,
    count: int,
    *,
    label_last: bool = False,
    separator: str | None = None,
    missing: str | None = None,
) -> list[list[tuple[str, list[float]]]]:
    """Parse cells that list objects, each a label and `count` numbers. Returns a list of (label, numbers) for each row.

    Tokens are separated by white space, or by each single `separator`, so that consecutive separators give empty
    tokens. Numbers are parsed by Python's `float`. Empty and blank cells become `missing`; if that is None, empty
    cells are rejected. Columns of numbers, invalid numbers and incomplete objects are rejected, too.
    """
    rows = []
    for row, cell in enumerate(texts(frame, column, missing=missing)):
        text = cell if cell.strip() or missing is None else missing
        tokens = text.split(separator) if text else []
        if len(tokens) % (count + 1):
            raise InvalidSubmission(
                f"`{column}` of {_row(frame, row)} has {len(tokens)} values; {count + 1} are needed for each object."
            )
        groups = [tokens[start : start + count + 1] for start in range(0, len(tokens), count + 1)]
        label_position = count if label_last else 0
        try:
            rows.append([(group.pop(label_position), [float(token) for token in group]) for group in groups])
        except ValueError as error:
            raise InvalidSubmission(f"`{column}` of {_row(frame, row)}: {str(error)[:80]}.") from error
    return rows


_BATCH_ROWS = 2000  # rows that are parsed at a time, so that memory is reused


class LabelledNumbers(NamedTuple):
    """The m objects that cells list: row number and label of each object, both (m,), and its numbers, (m, k)."""

    rows: NDArray[np.int64]
    labels: NDArray[np.object_]
    numbers: NDArray[np.float64]


def labelled_columns(
    frame: pd.DataFrame,
    column: str,
    count: int,
    *,
    label_last: bool = False,
    separator: str | None = None,
    missing: str | None = None,
) -> LabelledNumbers:
    """Like `labelled_numbers`, but as arrays, for metrics that work on all objects at once."""
    column_of_text = strings(frame, column, missing=missing)
    if separator in (None, " ") and not missing:
        objects = _plain_objects(column_of_text, count + 1, count if label_last else 0)
        if objects is not None:
            return objects
    cells: list[str] = column_of_text.to_pylist()
    if missing is not None:
        cells = [cell if cell and not cell.isspace() else missing for cell in cells]
    lists = [cell.split(separator) if cell else [] for cell in cells]
    sizes = np.fromiter(map(len, lists), np.int64, len(lists))
    tokens = list(chain.from_iterable(lists))
    step, label_position = count + 1, count if label_last else 0
    number_positions = [k for k in range(step) if k != label_position]
    try:
        if (sizes % step).any():
            raise ValueError("an incomplete object")
        numbers = [np.fromiter(map(float, tokens[k::step]), np.float64, len(tokens) // step) for k in number_positions]
    except ValueError:  # the next call raises the error that names the cell
        labelled_numbers(frame, column, count, label_last=label_last, separator=separator, missing=missing)
        raise
    labels = np.fromiter(tokens[label_position::step], dtype=object, count=len(tokens) // step)
    return LabelledNumbers(np.repeat(np.arange(len(lists)), sizes // step), labels, np.column_stack(numbers))


def plain_numbers(tokens: pa.Array) -> NDArray[np.float64]:
    """Each text as Python's `float` reads it, shape (n,). Raises Python's ValueError for the first other text."""
    numbers = _arrow_numbers(tokens)
    return np.array([float(token) for token in tokens.to_pylist()], np.float64) if numbers is None else numbers


def _arrow_numbers(tokens: pa.Array) -> NDArray[np.float64] | None:
    """The texts as numbers, read by Arrow; None if Python might read one of them differently."""
    import pyarrow as pa

    if characters_of(tokens).tobytes().translate(None, NUMERALS):
        return None
    try:
        numbers: NDArray[np.float64] = tokens.cast(pa.float64()).to_numpy(zero_copy_only=False)
    except pa.ArrowException:  # for example a number that is too large
        return None
    return numbers


def _plain_objects(column: pa.Array, step: int, label_position: int) -> LabelledNumbers | None:
    """The objects of cells of printable ASCII with single blanks, parsed by Arrow; None if they have any other form.

    Args:
        column: the cells; empty cells have no objects.
        step: the number of values of each object.
        label_position: the position of the label among these values.
    """
    import pyarrow as pa

    blocks = []
    try:
        for start in range(0, len(column), _BATCH_ROWS):
            objects = _objects(column.slice(start, _BATCH_ROWS), step, label_position)
            if objects is None:
                return None
            blocks.append(objects._replace(rows=objects.rows + start))
    except (ValueError, pa.ArrowException):  # for example text of more than 2 GiB
        return None
    if not blocks:
        return None
    return LabelledNumbers(*(np.concatenate(parts) for parts in zip(*blocks, strict=True)))


def _objects(column: pa.Array, step: int, label_position: int) -> LabelledNumbers | None:
    """The objects of some rows; None if a cell has any other form."""
    import pyarrow as pa
    import pyarrow.compute as pc

    rows = np.flatnonzero(pc.not_equal(column, "").to_numpy(zero_copy_only=False))
    if len(rows) < len(column):
        column = column.take(pa.array(rows))
    if not len(rows):
        return LabelledNumbers(rows, np.zeros(0, object), np.zeros((0, step - 1)))
    data = characters_of(column)
    if data.min() < ord(" ") or data.max() > ord("~"):
        return None
    parts = pc.split_pattern(column, " ")
    sizes, tokens = np.diff(parts.offsets), parts.values
    if (sizes % step).any() or pc.any(pc.equal(pc.binary_length(tokens), 0)).as_py():
        return None
    number_positions = np.flatnonzero(np.arange(len(tokens)) % step != label_position)
    numbers = _arrow_numbers(tokens.take(pa.array(number_positions)))
    if numbers is None:
        return None
    labels = tokens.take(pa.array(np.arange(label_position, len(tokens), step))).dictionary_encode()
    names = np.array(labels.dictionary.to_pylist(), dtype=object)
    return LabelledNumbers(
        np.repeat(rows, sizes // step), names[labels.indices.to_numpy()], numbers.reshape(-1, step - 1)
    )


def rle_masks(
    frame: pd.DataFrame,
    column: str,
    pixels: int | Sequence[int],
    *,
    missing: str | None = None,
    strict: bool = False,
) -> list[RleMask]:
    """Parse run-length encoded masks of images with `pixels` pixels (one number, or one per row).

    For the format and for `strict` see `metrics.rle_masks.parse_rle`.

    Rejects cells that cannot be decoded, columns without any text, and empty cells unless `missing` is given.
    """
    masks = rle_columns(frame, column, pixels, missing=missing, strict=strict)
    return [masks.mask(row) for row in range(masks.size)]


def rle_columns(
    frame: pd.DataFrame,
    column: str,
    pixels: int | Sequence[int],
    *,
    missing: str | None = None,
    strict: bool = False,
) -> RleMasks:
    """Like `rle_masks`, but all masks together, for the metrics of `metrics.rle_columns`."""
    try:
        return parse_column(texts(frame, column, missing=missing), pixels, strict=strict)
    except ValueError as error:
        reason, row = error.args
        raise InvalidSubmission(f"`{column}` of {_row(frame, row)}: {reason}.") from error


def _row(frame: pd.DataFrame, row: int) -> str:
    """The name of a row in messages: its first column, usually the id."""
    return f"{frame.columns[0]} {str(frame.iloc[row, 0])[:40]!r}"
