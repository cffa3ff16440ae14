"""Types of the columns of a CSV as pandas infers them: of the texts of a column, and of a table read in blocks."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from competitions.tables.arrays import text_of

MISSING = ["#N/A", "#N/A N/A", "#NA", "-1.#IND", "-1.#QNAN", "-NaN", "-nan", "1.#IND", "1.#QNAN", "<NA>", "N/A", "NA"]
MISSING += ["NULL", "NaN", "None", "n/a", "nan", "null"]
"""Texts that pandas reads as missing values, as documented for `read_csv`, besides the empty one."""
NUMERALS = b"0123456789.-+eE"
"""Bytes of numbers in the usual spellings: not `nan`, `1_0` and others."""
_NUMERIC = np.zeros(256, dtype=bool)
_NUMERIC[list(NUMERALS)] = True
_FRACTIONAL = np.zeros(256, dtype=bool)
_FRACTIONAL[list(b".eE")] = True
WHOLE_DIGITS = 18
"""Whole numbers with at most this many digits fit 64 bits."""
_MAX_MISSING_CHARACTERS = max(map(len, MISSING))
_SAMPLE_BYTES = 1 << 12  # bytes that are inspected first, because most columns of text begin with text
FLOAT_DIGITS = 100
"""pandas parses floats with more characters."""
_MAX_EXACT_CHARACTERS = 16  # a float of 15 digits and a point
_INSPECTED_VALUES = 50  # number of values inspected to decide that a column is text


def infer_column(strings: pa.StringArray, is_text: bool, missing: bool) -> pa.Array | None:
    """The strings as int64, double or string with nulls, as pandas would infer them; None if only pandas can tell.

    Args:
        strings: the cells as they are in the file, without the quotes around them.
        is_text: whether the column is read as text whatever it contains.
        missing: whether pandas' default names of missing values, such as `NA`, count as missing.
    """
    lengths = pc.binary_length(strings).to_numpy()
    numbers = None if is_text else _numbers(strings, lengths, lengths == 0, missing)
    if numbers is not None:
        return numbers
    if missing:
        absent = pa.array(lengths == 0)
        if len(lengths) and lengths.min() <= _MAX_MISSING_CHARACTERS:
            absent = pc.or_(absent, pc.is_in(strings, pa.array(MISSING)))
        if pc.any(absent).as_py():
            strings = pc.if_else(absent, pa.scalar(None, pa.string()), strings)
    if is_text:
        return strings
    if strings.null_count == len(strings):
        return pa.nulls(len(strings), pa.float64())
    if strings.null_count:
        filled = pc.fill_null(strings, "")
        numbers = _numbers(filled, pc.binary_length(filled).to_numpy(), absent.to_numpy(zero_copy_only=False), missing)
        if numbers is not None:
            return numbers
    return strings if surely_text(strings) else None


def _numbers(
    strings: pa.StringArray, lengths: NDArray[np.int32], absent: NDArray[np.bool_], missing: bool
) -> pa.Array | None:
    """The strings as whole numbers or floats; None if they may be something else."""
    characters = characters_of(strings)
    gaps = bool(absent.any())
    if not len(characters) or (gaps and not missing):
        return None
    if not _NUMERIC[characters[:_SAMPLE_BYTES]].all():
        return None
    digits = _are_digits(characters)
    whole = digits or (not _FRACTIONAL[characters[:_SAMPLE_BYTES]].any() and not _fractional(characters))
    longest = int(lengths.max())
    if longest > (WHOLE_DIGITS if whole else FLOAT_DIGITS):
        return None
    if gaps:
        strings = pc.if_else(pa.array(absent), pa.scalar(None, pa.string()), strings)
    # pandas drops the sign of zero where it takes a column for whole numbers; Arrow reads hexadecimal ones.
    if whole and not digits and _has_any(characters.tobytes(), (b"-0", b"x", b"X")):
        return None
    try:
        if whole and not gaps:
            return strings.cast(pa.int64())
        floats = strings.cast(pa.float64())
    except pa.ArrowInvalid:
        return None
    # In float columns, pandas has special rules for whole numbers beyond 64 bits and numbers outside the float range.
    # Arrow reads `nan` and `inf` as well.
    values = (floats.drop_null() if gaps else floats).to_numpy()
    largest = max(-values.min(), values.max())
    large = not np.isfinite(largest) or (longest > WHOLE_DIGITS and largest >= 10.0 ** (WHOLE_DIGITS - 1))
    return None if large else floats


def _has_any(text: bytes, markers: Iterable[bytes]) -> bool:
    """Whether a marker is in the text. Searching its first byte first is ten times faster if that does not occur."""
    return any(text.find(marker[:1]) >= 0 and marker in text for marker in markers)


def is_ordinary(strings: pa.StringArray) -> bool:
    """Whether pandas' ordinary converter gives the nearest float of every cell, each a number or missing.

    It multiplies or divides the number that the digits make by a power of ten (`precise_xstrtod`). Both are exact up to
    15 digits without an exponent, so that there is one rounding.
    """
    longest = pc.max(pc.binary_length(strings)).as_py() or 0
    return longest <= _MAX_EXACT_CHARACTERS and not any(mark in text_of(strings).tobytes() for mark in (b"e", b"E"))


def _are_digits(characters: NDArray[np.uint8]) -> bool:
    """Whether all characters are digits. Unlike comparisons of all characters, this needs no memory for results."""
    return bool(characters.max() <= ord("9") and characters.min() >= ord("0"))


def _fractional(characters: NDArray[np.uint8]) -> bool:
    """Whether there is a point or an exponent."""
    return bool((characters == ord(".")).any() or (characters | np.uint8(32) == ord("e")).any())


def surely_text(strings: pa.StringArray) -> bool:
    """Whether one of the first values is text for every parser: neither a number nor a boolean."""
    values = strings if not strings.null_count else strings.drop_null()
    for value in values[:_INSPECTED_VALUES].to_pylist():
        if "_" in value:  # Python's `float` accepts underscores between digits, pandas does not
            return True
        try:
            float(value)
        except ValueError:
            if value.strip().lower() not in ("true", "false"):
                return True
    return False


def characters_of(texts: pa.Array) -> NDArray[np.uint8]:
    """The bytes of all texts, one after the other."""
    return np.frombuffer(text_of(texts), np.uint8)


class Types:
    """The type of each column over all blocks, combined by the rules of pandas."""

    def __init__(self) -> None:
        self._examples: dict[str, dict[Any, pd.Series]] = defaultdict(dict)

    def copy(self) -> Types:
        """An independent copy."""
        copied = Types()
        copied._examples.update({name: dict(examples) for name, examples in self._examples.items()})
        return copied

    @property
    def mixed(self) -> bool:
        """Whether a column has several types."""
        return any(len(examples) > 1 for examples in self._examples.values())

    def learn(self, block: pd.DataFrame) -> bool:
        """Add the types of a block. Returns whether a column has a type that it had in no earlier block."""
        new_examples = {
            name: values[:1] for name, values in block.items() if values.dtype not in self._examples[str(name)]
        }
        for name, example in new_examples.items():
            self._examples[str(name)][example.dtype] = example
        return bool(new_examples)

    def cast(self, block: pd.DataFrame) -> pd.DataFrame:
        """`block` with the types that its columns have in the whole table."""
        mixed = {name: list(examples.values()) for name, examples in self._examples.items() if len(examples) > 1}
        columns = {name: pd.concat([block[name], *examples]).iloc[: len(block)] for name, examples in mixed.items()}
        return block.assign(**columns)


def inference_rows(columns: int) -> int:
    """Number of rows for which pandas' parser infers types at a time (``low_memory``, the default)."""
    limit = 2**20 // columns
    rows = 1
    while rows * 2 < limit:
        rows *= 2
    return rows
