"""CSV tables that are too large for a data frame, and writing their rows in any order.

A `BigTable` reads the CSV in blocks and formats every row as ``to_csv(index=False)`` would after one ``read_csv`` of
the whole file. It keeps the text in a scratch file and the length of each row in memory. Rows are then written by
number, in any order. The scratch file is in the system's temporary directory; set ``TMPDIR`` if that is too small.

Memory: 4 bytes per row, 4 more per requested row, and about three times `WINDOW` bytes. Scratch: the size of the table.
"""

from __future__ import annotations

import io
import mmap
import os
import tempfile
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Executor, ThreadPoolExecutor
from functools import partial
from typing import IO, Any, NamedTuple, TypeVar

import numpy as np
import pandas as pd
import pyarrow as pa
from numpy.typing import NDArray

from competitions.errors import DownloadError
from competitions.preparing.declaration import Content
from competitions.preparing.download import BY_EDITION, Download
from competitions.tables import csv_blocks, csv_text
from competitions.tables.arrays import offsets_of, ordered, text_of
from competitions.tables.csv_types import Types, inference_rows
from competitions.tables.threads import WORKERS, in_order

WINDOW = 128 << 20  # bytes sorted at a time; the scratch file is read once per window
MAPPED = 2 * WINDOW  # bytes of a scratch file up to which it is not sorted, but mapped into memory
_PIECE = 8 << 20
_STEP = 1 << 20  # rows
_AHEAD = 256 << 20  # bytes of text waiting to be formatted
_LARGEST_BLOCK = 1 << 30  # bytes of a block of rows, at most

Rows = NDArray[np.integer[Any]]
T = TypeVar("T")


class BigTable:
    """The formatted rows of the CSV `name`. `options` are passed to ``read_csv`` (dtype, keep_default_na, ...).

    The columns in `keep`, which are needed to draw the test set, stay in memory with their types as `kept`.
    """

    def __init__(self, download: Download, name: str, *, keep: Sequence[str] = (), **options: Any) -> None:
        options = {"float_precision": "round_trip", **options}
        key = ("table", name, tuple(keep), repr(sorted(options.items())))
        read = partial(_Formatted, download, name, list(keep), options)
        self._formatted = formatted = read() if BY_EDITION in options else download.shared(key, read)
        self.columns = formatted.columns
        self.kept = formatted.kept.copy(deep=download.remembers)
        self._lengths, self._block_rows = formatted.lengths, formatted.block_rows

    def __len__(self) -> int:
        return len(self._lengths)

    @property
    def rows(self) -> Rows:
        """The numbers of all rows in file order, from 0. Test sets are drawn from them."""
        return np.arange(len(self), dtype=np.int32 if len(self) < 1 << 31 else np.int64)

    def content(self, rows: Rows) -> Content:
        """The header and the rows with these numbers, in the given order, as ``to_csv(index=False)`` writes them."""
        return Content(lambda: self._pieces(rows))

    def frames(self, rows: Rows) -> Iterator[pd.DataFrame]:
        """Yield the rows as frames of bounded size.

        Cells are text as formatted (NaN for missing ones), so that writing them gives the same bytes again.
        """
        return self._each(rows, self._read)

    def _read(self, text: memoryview) -> pd.DataFrame:
        return pd.read_csv(
            io.BytesIO(text),
            names=self.columns,
            dtype=str,
            keep_default_na=False,
            na_values=[""],
            lineterminator="\n",  # a carriage return inside a cell is not quoted
            skip_blank_lines=False,
        )

    def frame(self, rows: Rows) -> pd.DataFrame:
        """The rows as one frame, for selections that fit in memory."""
        return pd.concat([pd.DataFrame(columns=self.columns, dtype=object), *self.frames(rows)], ignore_index=True)

    def _pieces(self, rows: Rows) -> Iterator[bytes]:
        yield self._formatted.header
        yield from self._each(rows, bytes)

    def _each(self, rows: Rows, finish: Callable[[memoryview], T]) -> Iterator[T]:
        """Yield `finish(text)` for pieces of the rows' text of bounded size. A few pieces are computed concurrently."""
        mapped = self._mapped()
        with ThreadPoolExecutor(WORKERS) as pool:
            for some in _ranges(len(rows), lambda some: self._lengths[rows[some]], WINDOW):
                part = rows[some]
                found, places = self._gathered(part, pool) if mapped is None else (mapped, part)
                pieces = (places[some] for some in _ranges(len(part), self._lengths[part].__getitem__, _PIECE))
                yield from in_order(pool, partial(_finished, found, finish=finish), pieces, WORKERS)

    def _mapped(self) -> pa.LargeBinaryArray | None:
        """The text of all rows, as a view of the scratch file; None if that is too large."""
        size = self._formatted.block_starts[-1]
        if not 0 < size <= MAPPED:
            return None
        self._formatted.scratch.flush()
        text = mmap.mmap(self._formatted.scratch.fileno(), size, access=mmap.ACCESS_READ)
        return _rows(self._lengths, pa.py_buffer(text))

    def _gathered(self, rows: Rows, pool: Executor) -> tuple[pa.LargeBinaryArray, Rows]:
        """The text of the rows in ascending order, and the position of each of `rows` in it.

        In ascending order the scratch file is read once from front to back.
        """
        order, ascending = ordered(rows)
        places = np.empty_like(order)
        places[order] = np.arange(len(order))
        bounds = np.searchsorted(ascending, np.arange(len(self._formatted.block_starts)) * self._block_rows)
        numbers = np.flatnonzero(np.diff(bounds))
        self._formatted.scratch.flush()
        taken = pool.map(lambda number: self._taken(number, ascending[bounds[number] : bounds[number + 1]]), numbers)
        return pa.concat_arrays(list(taken)), places

    def _taken(self, number: int, rows: Rows) -> pa.LargeBinaryArray:
        """Rows of one block, in ascending order."""
        start, stop = self._formatted.block_starts[number : number + 2]
        text = os.pread(self._formatted.scratch.fileno(), stop - start, start)
        first = number * self._block_rows
        lengths = self._lengths[first : first + self._block_rows]
        return _rows(lengths, pa.py_buffer(text)).take(pa.array(rows - first))


class _Formatted:
    """A table as text in a scratch file, which is not changed any more."""

    def __init__(self, download: Download, name: str, keep: list[str], options: dict[str, Any]) -> None:
        self._download, self._name, self._options = download, name, options
        empty = download.read_csv(name, **{**options, "nrows": 0})
        self.columns: list[str] = list(empty.columns)
        self.header = _csv(empty, header=True)
        self.block_rows = inference_rows(len(self.columns))
        plan = csv_blocks.Plan.of(self.columns, options)
        types = Types()
        settled = False
        while not settled:  # repeated only if a later block changed a column's type, which makes earlier rows wrong
            try:
                settled = self._format(types, keep, plan)
            except csv_blocks.Unusual:
                plan, types = None, Types()

    def _format(self, types: Types, keep: list[str], plan: csv_blocks.Plan | None) -> bool:
        """Fill the scratch file. Returns False if a block after the first had new types."""
        self.scratch = tempfile.TemporaryFile(prefix="mlebench-table-")  # noqa: SIM115  # lives as long as the table
        self.block_starts = [0]
        lengths: list[NDArray[np.int32]] = []
        kept: list[pd.DataFrame] = []
        settled = True
        known = types.copy()
        for block in self._formatted(known, keep, plan):
            settled &= not types.learn(block.example) or not lengths
            kept.append(block.kept)
            lengths.append(block.lengths)
            self.scratch.write(block.text)
            self.block_starts.append(self.block_starts[-1] + len(block.text))
        self.lengths = np.concatenate(lengths)
        self.kept = pd.concat(kept, ignore_index=True)
        return settled

    def _formatted(self, types: Types, keep: list[str], plan: csv_blocks.Plan | None) -> Iterator[_Block]:
        """Yield the blocks of the file in order. A few are parsed and formatted concurrently."""
        with self._download.open_file(self._name) as file, ThreadPoolExecutor(WORKERS) as pool:
            if plan:
                texts = csv_blocks.cut(file, self.block_rows)
                work = partial(self._parsed, plan, types=types, keep=keep)
                yield from in_order(pool, work, texts, lambda text: min(WORKERS, _AHEAD // len(text) + 1))
            else:
                yield from in_order(pool, partial(_block_of, types=types, keep=keep), self._frames(file), WORKERS)

    def _frames(self, file: IO[bytes]) -> Iterator[pd.DataFrame]:
        bounded = _Bounded(file, self._name)
        with pd.read_csv(io.BufferedReader(bounded), chunksize=self.block_rows, **self._options) as blocks:
            for block in blocks:
                bounded.read_since = 0
                yield block

    def _parsed(self, plan: csv_blocks.Plan, text: bytes, types: Types, keep: list[str]) -> _Block:
        columns = csv_blocks.parse(text, plan)
        if columns is not None and not types.mixed:
            # Without quotes no cell has a character that is quoted: each would end the cell or the row.
            rows = csv_text.rows_of_arrays(list(columns.values()), plain=b'"' not in text)
            if rows is not None:
                example = csv_blocks.frame({name: column[:1] for name, column in columns.items()})
                kept = csv_blocks.frame({name: columns[name] for name in keep})
                return _Block(example, kept, text_of(rows), np.diff(offsets_of(rows)))
        if columns is not None:
            return _block_of(csv_blocks.frame(columns), types, keep)
        options = {**self._options, "header": None, "names": self.columns}
        return _block_of(pd.read_csv(io.BytesIO(text), **options), types, keep)


class _Bounded(io.RawIOBase):
    """A file of which pandas cannot read more than `_LARGEST_BLOCK` bytes for one block of rows.

    After a quote that is never closed, pandas would read the rest of the file into memory.
    """

    def __init__(self, file: IO[bytes], name: str) -> None:
        self._file, self._name, self.read_since = file, name, 0

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        data = self._file.read(len(buffer))
        buffer[: len(data)] = data
        self.read_since += len(data)
        if self.read_since > _LARGEST_BLOCK:
            raise DownloadError(
                f"{self._name} has rows of more than {_LARGEST_BLOCK >> 20:,} MB, or a quote that is never closed; "
                "download it again"
            )
        return len(data)


def _ranges(count: int, lengths: Callable[[slice], NDArray[np.int32]], size: int) -> Iterator[slice]:
    """Yield consecutive ranges of `count` rows whose lengths add up to about `size`.

    Lengths are requested for some rows at a time, because all of them would take more memory than everything else.
    """
    start = total = 0
    for first in range(0, count, _STEP):
        ends = total + np.cumsum(lengths(slice(first, first + _STEP)), dtype=np.int64)
        bounds = np.arange(-(-total // size) * size, ends[-1], size)
        for stop in first + np.searchsorted(ends, bounds):
            if stop > start:
                yield slice(start, int(stop))
                start = int(stop)
        total = int(ends[-1])
    if count > start:
        yield slice(start, count)


def _rows(lengths: NDArray[np.int32], text: pa.Buffer) -> pa.LargeBinaryArray:
    offsets = np.concatenate([[0], np.cumsum(lengths, dtype=np.int64)])
    return pa.LargeBinaryArray.from_buffers(pa.large_binary(), len(lengths), [None, pa.py_buffer(offsets), text])


def _finished(found: pa.LargeBinaryArray, places: Rows, finish: Callable[[memoryview], T]) -> T:
    return finish(text_of(found.take(pa.array(places))))


class _Block(NamedTuple):
    """A formatted block of rows: a row with its types, the kept columns, the text, and the length of each row."""

    example: pd.DataFrame
    kept: pd.DataFrame
    text: bytes | memoryview
    lengths: NDArray[np.int32]


def _block_of(frame: pd.DataFrame, types: Types, keep: list[str]) -> _Block:
    cast = types.cast(frame)
    text = _csv(cast)
    return _Block(frame.iloc[:1], cast[keep], text, _lengths(text))


def _csv(frame: pd.DataFrame, *, header: bool = False) -> bytes:
    return csv_text.text(frame, {"index": False, "header": header})


def _lengths(text: bytes) -> NDArray[np.int32]:
    """The length of each row of a CSV."""
    return np.diff(csv_blocks.row_ends(text), prepend=0).astype(np.int32)
