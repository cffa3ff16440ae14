"""Write CSV with the same bytes as ``DataFrame.to_csv(index=False)``, but many times faster.

pandas converts every value to a Python string and passes rows to Python's `csv` one by one. Here Arrow formats the
common types of columns (integers, floats, booleans, text), a column at a time and without holding the GIL, so that
threads run in parallel. pandas formats everything that is not known to be equal: other types of columns, other options,
and single floats that the two format differently.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from typing import TYPE_CHECKING, Any, NamedTuple

from common.concurrency import WORKERS, ordered_map
from competitions.tables.arrays import text_of, whole

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa
    from numpy.typing import NDArray

_MIN_ROWS = 50_000  # minimum of rows formatted at a time: large enough to be fast, small enough to stay in the cache
_PANDAS_CELLS = 100_000  # pandas formats this many cells at a time
_SUPPORTED_OPTIONS = {"index", "sep", "header", "float_format", "quoting"}
_QUOTING = (csv.QUOTE_MINIMAL, csv.QUOTE_NONNUMERIC)
_SIGNIFICANT = re.compile(r"%\.([1-9]|1[0-5])g")
"""A format with significant digits, as many as any float has. Arrow writes the shortest digits of the rounded float."""
_DECIMAL = re.compile(r"%\.([1-9]|1[0-5])f")
"""A format with decimal places, all of which are written. Arrow writes them for a decimal number."""
# Within these bounds pandas and Arrow write the shortest digits that give the same float, without an exponent.
_MIN_PLAIN_FLOAT, _MAX_PLAIN_FLOAT = 1e-4, 1e10
_MIN_PLAIN_PLACES = 4
"""Decimal places of the smallest of these floats."""
_POWERS = [float(f"1e{exponent}") for exponent in range(-_MIN_PLAIN_PLACES, 11)]
_TENS = [float(10**exponent) for exponent in range(15 + _MIN_PLAIN_PLACES)]
"""Powers of ten that are exact."""
_MAX_EXACT_FLOAT = 1e15
"""Below this bound, floats represent every multiple of a half."""
_DECIMAL_DIGITS = 19
"""A decimal number with this many digits holds any whole number of 64 bits."""


class _Format(NamedTuple):
    """How cells are written."""

    separator: str = ","
    floats: str | None = None
    """A format with a number of significant digits or of decimal places; by default, the shortest exact digits."""
    all_texts: bool = False
    """Whether all texts and missing values are enclosed in quotes, or only texts that need them."""

    @classmethod
    def of(cls, options: dict[str, Any]) -> _Format | None:
        """The format for these options of `to_csv`; None if only pandas supports them."""
        separator, floats = options.get("sep", ","), options.get("float_format")
        quoting = options.get("quoting") or csv.QUOTE_MINIMAL
        if options.keys() - _SUPPORTED_OPTIONS or options.get("index", True):
            return None
        if not isinstance(options.get("header", True), bool):
            return None
        if separator not in (",", "\t") or quoting not in _QUOTING:
            return None
        all_texts = quoting == csv.QUOTE_NONNUMERIC
        if floats is not None and (all_texts or not isinstance(floats, str)):
            return None  # formatted floats are texts to pandas
        if floats is not None and not (_SIGNIFICANT.fullmatch(floats) or _DECIMAL.fullmatch(floats)):
            return None
        return cls(separator, floats, all_texts)


_PLAIN = _Format()


def slices(frame: pd.DataFrame) -> Iterator[pd.DataFrame]:
    """Yield the frame in the same pieces as pandas, because the format of some types depends on the piece."""
    step = max(_PANDAS_CELLS // (len(frame.columns) or 1), 1)
    step *= -(-_MIN_ROWS // step)
    for start in range(0, max(len(frame), 1), step):
        yield frame.iloc[start : start + step]


def pieces(frames: Iterable[pd.DataFrame], options: dict[str, Any]) -> Iterator[bytes]:
    """Yield the text of the concatenated frames under one header. A few frames are formatted concurrently."""
    header = options.get("header", True)
    parts = enumerate(part for frame in frames for part in slices(frame))
    with ThreadPoolExecutor(WORKERS) as pool:
        yield from ordered_map(
            pool, lambda part: text(part[1], {**options, "header": False if part[0] else header}), parts, WORKERS
        )


def text(frame: pd.DataFrame, options: dict[str, Any]) -> bytes:
    """The bytes of ``frame.to_csv(**options)``."""
    fast = _fast(frame, options)
    if fast is not None:
        return fast
    return str(frame.to_csv(**options)).encode("utf-8", "surrogatepass")


def _fast(frame: pd.DataFrame, options: dict[str, Any]) -> bytes | None:
    """The bytes of `text`, formatted by Arrow; None if they are not known to be equal."""
    import pyarrow as pa

    form = _Format.of(options)
    if form is None:
        return None
    if len(frame.columns) < 2 or frame.empty:  # pandas quotes an empty field that is alone in its row
        return None
    columns = []
    for position in range(len(frame.columns)):
        try:
            column = _column(frame.iloc[:, position], form)
        except (pa.ArrowException, UnicodeError, TypeError):
            return None
        if column is None:
            return None
        columns.append(column)
    rows = _rows(columns, form)
    if rows is None:
        return None
    head = frame.iloc[:0].to_csv(**options) if options.get("header", True) else ""
    return str(head).encode("utf-8", "surrogatepass") + text_of(rows)


def rows_of_arrays(columns: Sequence[pa.Array], *, plain: bool = False) -> pa.StringArray | None:
    """The rows of two or more columns of int64, double or string as `text` writes them, nulls as missing values.

    `plain` says that no string has a character that is quoted. The result is None if it is not known to be equal.
    """
    import pyarrow as pa

    strings = []
    for column in columns:
        if pa.types.is_floating(column.type):
            string = _floats(column.to_numpy(zero_copy_only=False))
        elif pa.types.is_string(column.type):
            string = column if plain else _quoted(column, _PLAIN)
        else:
            string = column.cast(pa.string())
        if string is None:
            return None
        strings.append(string)
    return _rows(strings, _PLAIN)


def _rows(columns: Sequence[pa.Array], form: _Format) -> pa.StringArray | None:
    """The rows with their line endings."""
    import pyarrow as pa
    import pyarrow.compute as pc

    options: dict[str, Any] = {"null_handling": "replace", "null_replacement": '""' if form.all_texts else ""}
    *first_columns, last_column = columns
    last_column = pc.binary_join_element_wise(last_column, pa.scalar("", last_column.type), "\n", **options)
    rows = pc.binary_join_element_wise(*first_columns, last_column, form.separator, **options)
    return None if isinstance(rows, pa.ChunkedArray) else rows


def _column(column: pd.Series, form: _Format) -> pa.Array | None:
    """One column as strings, missing values as nulls; None if only pandas can format it."""
    import numpy as np
    import pyarrow as pa
    import pyarrow.compute as pc

    if not isinstance(column.dtype, np.dtype):
        strings = pa.array(column.array) if str(column.dtype) == "string[pyarrow]" else None
        return None if strings is None else _quoted(_whole(strings), form)
    kind = column.dtype.kind
    if kind == "b":
        return pc.if_else(pa.array(column.to_numpy()), "True", "False")
    if kind in "iu":
        return pa.array(column.to_numpy()).cast(pa.string())
    if column.dtype == np.float64:
        values = column.to_numpy()
        if form.floats is None:
            return _floats(values)
        return _decimals(values, form.floats) if form.floats.endswith("f") else _rounded(values, form.floats)
    if kind == "O":
        return _texts(column.to_numpy(), form)
    return None


def _floats(values: Any) -> pa.Array:
    import numpy as np
    import pyarrow as pa
    import pyarrow.compute as pc

    size = np.abs(values)
    missing = np.isnan(values)
    same_format = ((size >= _MIN_PLAIN_FLOAT) & (size < _MAX_PLAIN_FLOAT)) | (values == 0)
    strings = pa.array(values, mask=missing).cast(pa.string())
    whole_numbers = same_format & (np.floor(values) == values)
    if whole_numbers.any():
        strings = pc.if_else(pa.array(whole_numbers), pc.binary_join_element_wise(strings, ".0", ""), strings)
    pandas_formats = ~same_format & ~missing
    if pandas_formats.any():
        strings = pc.replace_with_mask(
            strings, pa.array(pandas_formats), pa.array(values[pandas_formats].astype(str).astype(object))
        )
    return strings


def _rounded(values: NDArray[Any], form: str) -> pa.Array:
    """The floats as ``form % value`` writes them, missing values as nulls.

    Of the decimal numbers that give a float, one of at most 15 digits is the shortest. The float is the quotient of two
    floats, the digits as a whole number and a power of ten, both exact. The digits are the product of the value and
    that power, rounded, unless the product, which may be one unit off, is next to a half.
    """
    import numpy as np
    import pyarrow as pa

    digits = int(form[2:-1])
    largest = min(_MAX_PLAIN_FLOAT, 10.0**digits)
    size, missing = np.abs(values), np.isnan(values)
    same_format = (size >= _MIN_PLAIN_FLOAT) & (size < largest)
    size[~same_format] = 1.0
    exponents = np.searchsorted(np.array(_POWERS), size, side="right") - _MIN_PLAIN_PLACES - 1
    tens = np.array(_TENS)[digits - 1 - exponents]
    scaled = size * tens
    whole_numbers = np.rint(scaled)
    same_format &= np.abs(np.abs(scaled - whole_numbers) - 0.5) > np.spacing(scaled)
    rounded = whole_numbers / tens
    same_format &= rounded < largest
    zero = values == 0
    same_format |= zero
    rounded[zero] = 0.0
    strings = pa.array(np.copysign(rounded, values), mask=missing).cast(pa.string())
    return _others(strings, values, ~same_format & ~missing, form)


def _decimals(values: NDArray[Any], form: str) -> pa.Array:
    """The floats as ``form % value`` writes them, a number of decimal places, missing values as nulls.

    As in `_rounded`, the digits are the product of the value and a power of ten, rounded, unless it is next to a half.
    """
    import numpy as np
    import pyarrow as pa
    import pyarrow.compute as pc

    places = int(form[2:-1])
    size, missing = np.abs(values), np.isnan(values)
    tens = float(10**places)
    # Arrow writes an exponent where more than six zeros would come first.
    same_format = (size >= max(1.0 / tens, _MIN_PLAIN_FLOAT)) & (size < _MAX_EXACT_FLOAT / tens)
    scaled = np.where(same_format, size, 1.0) * tens
    whole_numbers = np.rint(scaled)
    same_format &= np.abs(np.abs(scaled - whole_numbers) - 0.5) > np.spacing(scaled)
    words = np.empty((len(values), 2), np.int64)  # of 128 bits, the lower ones first
    words[:, 0] = np.copysign(whole_numbers, values)
    words[:, 1] = words[:, 0] >> 63
    kind = pa.decimal128(_DECIMAL_DIGITS, places)
    strings = pa.Array.from_buffers(kind, len(values), [None, pa.py_buffer(words)]).cast(pa.string())
    if missing.any():
        strings = pc.if_else(pa.array(missing), pa.scalar(None, pa.string()), strings)
    zero = values == 0
    for sign, zeros in (("", zero & ~np.signbit(values)), ("-", zero & np.signbit(values))):
        if zeros.any():
            strings = pc.if_else(pa.array(zeros), f"{sign}0.{'0' * places}", strings)
    return _others(strings, values, ~same_format & ~missing & ~zero, form)


def _others(strings: pa.Array, values: NDArray[Any], mask: NDArray[Any], form: str) -> pa.Array:
    """The strings, those at the positions of the mask formatted one by one from the values."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if not mask.any():
        return strings
    return pc.replace_with_mask(strings, pa.array(mask), pa.array([form % value for value in values[mask].tolist()]))


def _texts(values: Any, form: _Format) -> pa.Array | None:
    import pandas as pd
    import pyarrow as pa

    if pd.api.types.infer_dtype(values, skipna=True) not in ("string", "empty"):
        return None
    strings = pa.array(values, type=pa.string(), from_pandas=True)
    return None if isinstance(strings, pa.ChunkedArray) else _quoted(strings, form)


def _whole(strings: pa.Array | pa.ChunkedArray) -> pa.StringArray:
    import pyarrow as pa

    array = whole(strings) if isinstance(strings, pa.ChunkedArray) else strings
    return pa.concat_arrays(array.chunks) if isinstance(array, pa.ChunkedArray) else array


def _quoted(strings: pa.StringArray, form: _Format) -> pa.Array | None:
    """The texts as they are written, missing texts as nulls."""
    import pyarrow.compute as pc

    characters = text_of(strings).tobytes()
    if b"\0" in characters:
        return None
    if form.all_texts:
        return _enclosed(strings, b'"' in characters)
    quoted_characters = form.separator + _marks()
    if not any(character.encode() in characters for character in quoted_characters):
        return strings
    special = pc.fill_null(pc.match_substring_regex(strings, f"[{quoted_characters}]"), False)
    return pc.replace_with_mask(strings, special, _enclosed(strings.filter(special), b'"' in characters))


def _enclosed(strings: pa.StringArray, has_quotes: bool) -> pa.StringArray:
    """The texts in quotes. `has_quotes` says whether one of them contains a quote."""
    import pyarrow.compute as pc

    return pc.binary_join_element_wise(
        '"', pc.replace_substring(strings, '"', '""') if has_quotes else strings, '"', ""
    )


@cache
def _marks() -> str:
    """The characters besides the separator for which this version of Python encloses a text in quotes."""
    row = io.StringIO()
    csv.writer(row, lineterminator="\n").writerow(["\r", ""])
    return '"\n\r' if row.getvalue().startswith('"') else '"\n'
