"""Read a CSV file as a frame, column by column, on all cores.

The frame equals that of ``pandas.read_csv(path, float_precision="round_trip")``, or with other options that `Rules`
knows. A file whose frame might differ is not read here: the caller leaves it to pandas, which is several times slower.
Memory holds the columns that are read, and a few pieces of the file.
"""

from __future__ import annotations

import csv as standard_csv
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray
from pyarrow import csv

from common.concurrency import WORKERS, end_threads, ordered_map, table_threads
from common.heap import release_freed_memory
from competitions.tables import pieces
from competitions.tables.arrays import MANY, text_of, whole
from competitions.tables.csv_blocks import (
    UnsupportedCsv,
    require_no_mark,
    require_plain_quotes,
    require_plain_rows,
    require_utf8,
    row_ends,
)
from competitions.tables.parts import Parts
from competitions.tables.pieces import Buffers, Piece
from competitions.tables.type_inference import infer_column, inference_rows, is_ordinary

if TYPE_CHECKING:
    import pandas as pd

Texts = Literal["object", "arrow"]
"""How columns of text are held: as Python strings, or as Arrow's, which take less memory and are faster to compare."""

SMALL = 1 << 15
"""Minimum size in bytes of a file that is read here. pandas reads smaller ones."""
_MIN_RELEASED_BYTES = 256 << 20
"""Minimum size in bytes of a file after which freed memory is returned to the system."""
_SLACK_BYTES = 1 << 12  # bytes by which a piece is longer than its share of the file, which ends within a row
_MIN_PARALLEL_BYTES = 1 << 20  # a file with fewer bytes is read with one core
_BOOLEANS = pa.array(["True", "TRUE", "true", "False", "FALSE", "false"])
_TRUE = pa.array(["True", "TRUE", "true"])
_NUMBERS = ("int8", "int16", "int32", "int64", "float64")


class Rules(NamedTuple):
    """How cells are interpreted: options of pandas' `read_csv`."""

    missing: bool = True
    """Whether empty cells, and texts such as `NA`, are missing values."""
    exact: bool = True
    """Whether floats are the nearest ones, or those of pandas' ordinary converter (``float_precision=None``)."""
    types: tuple[tuple[str, str], ...] = ()
    """Names of columns of numbers with their types."""

    @classmethod
    def of(cls, options: Mapping[str, Any]) -> Rules | None:
        """The rules for these options; None if only pandas knows all of them."""
        types, floats = options.get("dtype") or {}, options.get("float_precision")
        if options.keys() - {"float_precision", "keep_default_na", "dtype"} or floats not in (None, "round_trip"):
            return None
        if not isinstance(types, Mapping) or any(kind not in _NUMBERS for kind in types.values()):
            return None
        return cls(options.get("keep_default_na", True), floats is not None, tuple(types.items()))


PLAIN = Rules()
"""The rules of ``read_csv(path, float_precision="round_trip")``."""


def read_table(path: Path, wanted: Collection[str] | None = None) -> pa.Table | None:
    """The columns of `path`, of int64, double, bool or string; None if only pandas is known to read them right.

    `frame` makes a frame of them.

    Args:
        path: a CSV file in UTF-8 with a header.
        wanted: names of the columns to read, by default all. Those that the file does not have are left out.

    Raises:
        OSError: the file cannot be read.
    """
    size = path.stat().st_size
    if size < SMALL:
        return None
    with path.open("rb") as file:
        commas = file.readline(pieces.PIECE).count(b",")
        if size < commas * (SMALL // 8):  # many columns and few rows: the cost of each column dominates
            return None
        file.seek(0)
        # Each column of each piece has a cost as well, during which other threads wait.
        count = WORKERS * -(-size // (pieces.PIECE * WORKERS)) if size > max(_MIN_PARALLEL_BYTES, commas * SMALL) else 1
        buffers = Buffers(size // count + _SLACK_BYTES)
        cut = partial(pieces.from_file, buffers=buffers)
        table = _read(file, cut, wanted, buffers, PLAIN, count)
    if size > _MIN_RELEASED_BYTES:
        release_freed_memory()  # the columns take much memory, and their pieces are not needed again
    return table


def read_stream(file: IO[bytes], rules: Rules = PLAIN, size: int = 0) -> pa.Table | None:
    """All columns of a binary stream from its start, by `rules`; `frame` makes a frame of them.

    `size` is the number of bytes of the stream, if it is known; then fewer copies are made. If the result is None, any
    part of the stream may have been read.
    """
    return _read(file, pieces.from_stream, None, Buffers(pieces.PIECE), rules, max(2.0, size / pieces.PIECE))


def frame(table: pa.Table, texts: Texts) -> pd.DataFrame:
    """The frame that pandas' `read_csv` gives, of a table that `read_table` gave."""
    import pandas as pd

    index = pd.RangeIndex(len(table))
    floats = [name for name, field in zip(table.column_names, table.schema, strict=True) if field.type == pa.float64()]
    # Columns are not copied into one block for each type: code that needs one column of many makes its own block.
    if len(floats) < MANY:
        return pd.DataFrame({name: _values(table[name], texts) for name in table.column_names}, index, copy=False)
    # pandas takes longer to wrap a column than Arrow takes to parse 1,000 numbers, so these are one block.
    block = np.empty((len(floats), len(table)))
    for row, name in zip(block, floats, strict=True):
        row[:] = table[name]
    other_names = [name for name in table.column_names if table[name].type != pa.float64()]
    other_columns = {name: _values(table[name], texts) for name in other_names}
    parts = [pd.DataFrame(other_columns, index, copy=False), pd.DataFrame(block.T, index, floats, copy=False)]
    joined = pd.concat(parts, axis=1, copy=False) if other_columns else parts[1]
    return joined if list(joined.columns) == table.column_names else joined[table.column_names]


def _read(
    file: IO[bytes],
    cut: Callable[[IO[bytes]], Iterator[Piece]],
    wanted: Collection[str] | None,
    buffers: Buffers,
    rules: Rules,
    count: float,
) -> pa.Table | None:
    """The table in `file`, which `cut` cuts into about `count` pieces. One piece needs no thread."""
    try:
        names = header(file.readline(pieces.PIECE))
        chosen = [name for name in names if wanted is None or name in wanted]
        work = partial(_parsed, names=names, chosen=chosen, buffers=buffers, rules=rules)
        parts = [Parts(count) for _ in chosen]
        apply: Callable[..., Any] = partial(ordered_map, table_threads(), ahead=WORKERS) if count > 1 else map
        _gather(apply(work, cut(file)), parts)
    except UnsupportedCsv:
        return None
    except RuntimeError:  # no thread can be started, for example under a limit of memory
        end_threads()  # this also ends the calls that wait for a thread
        return None
    columns = [part.joined(inference_rows(len(names))) for part in parts]
    if not columns or any(column is None for column in columns):
        return None
    table = pa.table(columns, names=list(chosen))
    return _typed(table, rules) if rules.types else table


def _gather(pieces: Iterable[Sequence[pa.Array]], columns: Sequence[Parts]) -> None:
    for arrays in pieces:
        for column, array in zip(columns, arrays, strict=True):
            column.add(array)


def header(line: bytes) -> list[str]:
    """The names of the columns. Raises `UnsupportedCsv` if pandas may read other names."""
    try:
        text = line.decode("utf-8")
    except UnicodeDecodeError as error:
        raise UnsupportedCsv("a header that is not UTF-8") from error
    if not text.endswith("\n") or text[0] in "\ufeff \t\r\n" or "\0" in text or text.count('"') % 2:
        raise UnsupportedCsv("a header that ends within quotes, begins with a blank, or is alone")
    text = text.removesuffix("\n").removesuffix("\r")
    try:
        names = next(standard_csv.reader([text], strict=True)) if '"' in text else text.split(",")
    except standard_csv.Error as error:  # as in "a";"b"
        raise UnsupportedCsv("a header with something behind a quote") from error
    if '"' in text and ",".join(names) != text.replace('"', ""):
        raise UnsupportedCsv("quotes within names")
    names = [name or f"Unnamed: {number}" for number, name in enumerate(names)]  # such as an index
    if "\r" in text or len(names) < 2 or len(set(names)) < len(names):
        raise UnsupportedCsv("a single column, or names that are repeated")
    return names


def _parsed(
    piece: Piece,
    names: Sequence[str],
    chosen: Sequence[str],
    buffers: Buffers,
    rules: Rules,
) -> list[pa.Array]:
    """The chosen columns of a piece, as arrays of int64, double, bool or string. Raises `UnsupportedCsv`."""
    text, end, quotes = piece
    require_no_mark(text)
    require_utf8(text, end)
    quoted = quotes > 0
    marked = text.find(b"\r", 0, end) >= 0 or text.find(b"\0", 0, end) >= 0
    countable = not marked and len(chosen) == len(names)
    if (quoted or marked) and not countable:
        require_plain_quotes(text, end)
    numbers = {name: f"{number}" for number, name in enumerate(names)}
    included = dict.fromkeys(["0", *(numbers[name] for name in chosen)])
    try:
        table = csv.read_csv(
            pa.BufferReader(pa.py_buffer(memoryview(text)[:end])),
            csv.ReadOptions(use_threads=False, block_size=end + 1, column_names=list(numbers.values())),
            csv.ParseOptions(quote_char='"' if quoted else False, newlines_in_values=quoted, ignore_empty_lines=False),
            csv.ConvertOptions(
                check_utf8=False,
                column_types=dict.fromkeys(included, pa.string()),
                include_columns=list(included),
                strings_can_be_null=False,
            ),
        )
    except pa.ArrowException as error:
        raise UnsupportedCsv(str(error)) from error
    strings = {name: whole(table[name]) for name in included}
    if quoted and countable and not _adds_up(table, end, quotes):
        require_plain_quotes(text, end)
    if _has_empty(strings["0"]):  # as in an empty row
        require_plain_rows(text, np.append(0, row_ends(text[:end])[:-1]))
    buffers.give_back(text)
    return [_column(strings[numbers[name]], rules) for name in chosen]


def _adds_up(table: pa.Table, end: int, quotes: int) -> bool:
    """Whether cells, separators and the quotes around cells have `end` bytes together.

    Then no cell contains a quote, and the check of each quote, which takes as long as parsing, can be left out.
    """
    cells = sum(text_of(whole(column)).nbytes for column in table.columns)
    return cells + table.num_columns * table.num_rows + quotes == end


def _has_empty(cells: pa.StringArray) -> bool:
    """Whether a cell of the first column is empty. Raises `UnsupportedCsv` if one begins with a blank.

    pandas skips some rows that begin with a blank.
    """
    _, offsets, data = cells.buffers()
    if data is None:
        return len(cells) > 0
    starts = np.frombuffer(offsets, np.int32)[cells.offset : cells.offset + len(cells) + 1]
    filled = starts[:-1]
    empty = bool((starts[1:] == filled).any())
    if empty:
        filled = filled[starts[1:] > filled]
    begin = np.frombuffer(data, np.uint8)[filled]
    if ((begin == ord(" ")) | (begin == ord("\t"))).any():
        raise UnsupportedCsv("rows that begin with a blank")
    return empty


def _column(strings: pa.StringArray, rules: Rules) -> pa.Array:
    column = infer_column(strings, is_text=False, missing=rules.missing)
    if column is not None:
        if not rules.exact and column.type == pa.float64() and not is_ordinary(strings):
            raise UnsupportedCsv("floats that pandas' ordinary converter may not read exactly")
        return column
    if pc.all(pc.is_in(strings, _BOOLEANS)).as_py():
        return pc.is_in(strings, _TRUE)
    raise UnsupportedCsv("a column that may be numbers or text")


def _typed(table: pa.Table, rules: Rules) -> pa.Table | None:
    """The columns with the types of the rules; None if pandas might report that a cell has another type."""
    for name, kind in rules.types:
        position = table.column_names.index(name) if name in table.column_names else -1
        column_type = table[position].type if position >= 0 else None
        if column_type != pa.int64() and (column_type, kind) != (pa.float64(), "float64"):
            return None
        try:
            column = table[position].cast(pa.type_for_alias(kind), safe=kind != "float64")
        except pa.ArrowInvalid:  # out of range
            return None
        table = table.set_column(position, name, column)
    return table


def _numbers(column: pa.ChunkedArray) -> NDArray[Any]:
    """The values as pandas has them, in writable memory: that of the column if nothing else may use it."""
    if column.num_chunks == 1 and not column.null_count and column.type in (pa.int64(), pa.float64()):
        part = column.chunk(0)
        data = part.buffers()[1]
        if data is not None and data.is_mutable:
            kind = column.type.to_pandas_dtype()
            return np.frombuffer(data, kind, len(part), part.offset * np.dtype(kind).itemsize)
    values: NDArray[Any] = column.to_numpy()
    return values if values.flags.writeable else values.copy()


def _values(column: pa.ChunkedArray, texts: Texts) -> NDArray[Any] | pd.Series:
    """The column in a form that a frame takes without a copy."""
    import pandas as pd

    if not pa.types.is_string(column.type):
        return _numbers(column)
    if texts == "arrow":
        return pd.Series(pd.arrays.ArrowExtensionArray(whole(column)))
    values = column.to_pandas().to_numpy(dtype=object)  # equal strings of a column are one object, as with pandas
    if column.null_count:
        values = values.copy()
        values[column.is_null().to_numpy()] = np.nan
    return pd.Series(values, dtype=object)
