"""Rows of text in a scratch file, which are read in any order with bounded memory.

The file is read from front to back. Rows in another order than that of the file are first written to a second file,
window by window of the result, so that each window can then be read at once. Bytes are read twice and written once,
whatever the size of the table.

Memory: 6 bytes per row, and some 200 MB. Scratch: twice the size of the text.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from itertools import accumulate, pairwise
from typing import Any, NamedTuple, TypeVar

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from common.concurrency import WORKERS, ordered_map
from competitions.tables.arrays import offsets_of, text_of

WINDOW = 64 << 20
"""Bytes of a result that are put in order at a time, including the memory for the order of their rows."""
_ROW_OVERHEAD_BYTES = 32  # memory of a row besides its text
_PIECE_BYTES = 4 << 20
_STEP_ROWS = 1 << 20  # rows whose lengths are requested at a time
_READ_BYTES = 16 << 20  # bytes of the scratch file that are read at a time

Rows = NDArray[np.integer[Any]]
T = TypeVar("T")


class ScratchRows:
    """Rows that are appended, and then read by number."""

    def __init__(self) -> None:
        self._file = tempfile.TemporaryFile(prefix="mlebench-table-")  # noqa: SIM115  # lives as long as the rows
        self._appended: list[NDArray[np.int32]] = []
        self._lengths = np.empty(0, np.int32)
        self._size = 0

    def append(self, text: bytes | memoryview, lengths: NDArray[np.int32]) -> None:
        """Add rows with these lengths at the end."""
        self._file.write(text)
        self._size += len(text)
        self._appended.append(lengths)

    def complete(self) -> None:
        """End appending, so that the rows can be read."""
        self._file.flush()
        self._lengths = _joined(self._appended)

    def __len__(self) -> int:
        return len(self._lengths)

    def each(self, rows: Rows, finish: Callable[[memoryview], T]) -> Iterator[T]:
        """Yield `finish(text)` for pieces of the rows' text of bounded size. A few pieces are computed concurrently."""
        with ThreadPoolExecutor(WORKERS) as pool:
            for window in self._windows(rows):
                finished = partial(_finished, _rows(window.lengths, window.text), finish=finish)
                pieces = (window.places[part] for part in _ranges(len(window.places), window.lengths_of, _PIECE_BYTES))
                yield from ordered_map(pool, finished, pieces, WORKERS)

    def _windows(self, rows: Rows) -> Iterator[_Window]:
        """Yield the rows, in their order, with text of about `WINDOW` bytes at a time."""
        if self._size <= WINDOW:
            yield _Window(self._lengths, self._read(0, self._size), rows)
        elif (rows[1:] > rows[:-1]).all():
            start = position = 0
            for table_rows in _ranges(len(self), self._costs, WINDOW):
                lengths, stop = self._lengths[table_rows], int(np.searchsorted(rows, table_rows.stop))
                size = int(lengths.sum(dtype=np.int64))
                if stop > start:
                    yield _Window(lengths, self._read(position, size), rows[start:stop] - table_rows.start)
                start, position = stop, position + size
        else:
            spans = _ranges(len(rows), lambda span: self._costs(rows[span]), WINDOW)
            parts = [rows[span] for span in spans]
            while parts:  # once, unless rows are requested repeatedly
                numbers = np.zeros(len(self), np.uint16)
                for count, part in enumerate(parts, 1):
                    if numbers[part].any():
                        count -= 1
                        break
                    numbers[part] = count
                yield from self._distributed(parts[:count], numbers)
                del parts[:count]

    def _read(self, start: int, size: int) -> bytes:
        return os.pread(self._file.fileno(), size, start)

    def _costs(self, rows: slice | Rows) -> NDArray[np.int32]:
        return self._lengths[rows] + np.int32(_ROW_OVERHEAD_BYTES)

    def _distributed(self, parts: list[Rows], numbers: NDArray[np.uint16]) -> Iterator[_Window]:
        """Yield a window for each of these parts of the rows. `numbers` has the part of each row of the table, from 1.

        The table is read once; the rows of each part, in the order of the table, are written to a range of their own.
        """
        starts = [0, *accumulate(int(self._lengths[part].sum(dtype=np.int64)) for part in parts)]
        ends = starts.copy()
        with tempfile.TemporaryFile(prefix="mlebench-order-") as scratch:
            position = 0
            for table_rows in _ranges(len(self), self._lengths.__getitem__, _READ_BYTES):
                lengths, part_numbers = self._lengths[table_rows], numbers[table_rows]
                size = int(lengths.sum(dtype=np.int64))
                order = np.argsort(part_numbers, kind="stable")[np.count_nonzero(part_numbers == 0) :]
                ordered_rows = _rows(lengths, self._read(position, size)).take(pa.array(order))
                text, offsets = text_of(ordered_rows), offsets_of(ordered_rows)
                bounds = offsets[np.searchsorted(part_numbers[order], np.arange(1, len(parts) + 2))].tolist()
                for number, (begin, end) in enumerate(pairwise(bounds)):
                    if end > begin:
                        os.pwrite(scratch.fileno(), text[begin:end], ends[number])
                        ends[number] += end - begin
                position += size
            for number, part in enumerate(parts):
                ascending, positions = np.unique(part, return_inverse=True)
                text_of_part = os.pread(scratch.fileno(), ends[number] - starts[number], starts[number])
                yield _Window(self._lengths[ascending], text_of_part, positions)


class _Window(NamedTuple):
    """Some rows of a table: the length of each, their text, and the positions among them of the rows to be written."""

    lengths: NDArray[np.int32]
    text: bytes
    places: Rows

    def lengths_of(self, some: slice) -> NDArray[np.int32]:
        """The lengths of some of the rows to be written."""
        return self.lengths[self.places[some]]


def _ranges(count: int, lengths: Callable[[slice], NDArray[np.int32]], size: int) -> Iterator[slice]:
    """Yield consecutive ranges of `count` rows whose lengths add up to about `size`.

    Lengths are requested for some rows at a time, because all of them would take more memory than everything else.
    """
    start = total = 0
    for first_row in range(0, count, _STEP_ROWS):
        ends = total + np.cumsum(lengths(slice(first_row, first_row + _STEP_ROWS)), dtype=np.int64)
        bounds = np.arange(-(-total // size) * size, ends[-1], size)
        for stop in first_row + np.searchsorted(ends, bounds):
            if stop > start:
                yield slice(start, int(stop))
                start = int(stop)
        total = int(ends[-1])
    if count > start:
        yield slice(start, count)


def _rows(lengths: NDArray[np.int32], text: bytes) -> pa.LargeBinaryArray:
    offsets = np.concatenate([[0], np.cumsum(lengths, dtype=np.int64)])
    return pa.LargeBinaryArray.from_buffers(
        pa.large_binary(), len(lengths), [None, pa.py_buffer(offsets), pa.py_buffer(text)]
    )


def _finished(window: pa.LargeBinaryArray, positions: Rows, finish: Callable[[memoryview], T]) -> T:
    return finish(text_of(window.take(pa.array(positions))))


def _joined(parts: list[NDArray[np.int32]]) -> NDArray[np.int32]:
    """Like `numpy.concatenate`, but each part is freed once it is copied."""
    joined = np.empty(sum(map(len, parts)), np.int32)
    end = len(joined)
    while parts:
        part = parts.pop()
        joined[end - len(part) : end] = part
        end -= len(part)
    return joined
