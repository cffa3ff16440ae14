"""Join the parts of a column, one from each piece of a file.

Texts and numbers are appended to each other while the next pieces are parsed. Two copies of a column are never in
memory, and the memory of a part is reused for the next one, because the system clears every new page first.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from competitions.tables.arrays import offsets_of, text_of
from competitions.tables.type_inference import surely_text

_SIZE_MARGIN = 1.02  # the size reserved, relative to the size extrapolated from the first part
_MIN_CAPACITY_BYTES = 1 << 16
_GROWTH_FACTOR = 1.25
_MAX_TEXT_BYTES = (1 << 31) - 1  # bytes that one array of strings can hold


class Parts:
    """The parts of one column, in order.

    Args:
        pieces: how many pieces of the file are expected; more are possible.
    """

    def __init__(self, pieces: float) -> None:
        self._pieces = pieces
        self._others: list[pa.Array] = []
        self._texts: _Texts | None = None
        self._numbers: _Numbers | None = None

    def add(self, part: pa.Array) -> None:
        """Add an array of int64, double, bool or string; one without any value may have any type."""
        if self._numbers is not None:
            if self._others or not _is_number(part):
                self._others.append(part)
            else:
                self._numbers.add(part)
            return
        if self._texts is None and pa.types.is_string(part.type) and all(_is_empty(other) for other in self._others):
            self._texts = _Texts(self._pieces)
            empty_parts, self._others = self._others, []
            for empty_part in empty_parts:
                self._texts.add(empty_part.cast(pa.string()))
        if self._texts is not None and not self._others and (pa.types.is_string(part.type) or _is_empty(part)):
            self._texts.add(part if pa.types.is_string(part.type) else part.cast(pa.string()))
            return
        self._others.append(part)
        several = self._texts is None and len(self._others) > 1  # a single part is the column
        if several and all(map(_is_number, self._others)) and not all(map(_is_empty, self._others)):
            self._numbers = _Numbers(self._pieces)
            for other in self._others:
                self._numbers.add(other)
            self._others = []

    def joined(self, rows: int) -> pa.ChunkedArray | None:
        """The column with one type; None if pandas, which infers types for `rows` rows at a time, mixes them.

        The result is also None for a column without parts: only pandas decides its type.
        """
        if self._texts is not None:
            return None if self._others else self._texts.joined(rows)
        if self._numbers is not None:
            return None if self._others else self._numbers.joined()
        if not self._others:
            return None
        if all(map(_is_number, self._others)):
            common = pa.int64() if {part.type for part in self._others} == {pa.int64()} else pa.float64()
            return pa.chunked_array([part.cast(common) for part in self._others], common)
        if all(part.type == pa.bool_() for part in self._others):
            return pa.chunked_array(self._others, pa.bool_())
        return None


class _Validity:
    """Which values of a column are not missing. Parts without a missing value take no memory."""

    def __init__(self) -> None:
        self.sizes: list[int] = []
        self.missing = 0
        self._known: dict[int, NDArray[np.bool_]] = {}

    def add(self, part: pa.Array) -> None:
        if part.null_count:
            self._known[len(self.sizes)] = part.is_valid().to_numpy(False)
        self.sizes.append(len(part))
        self.missing += part.null_count

    def buffer(self) -> pa.Buffer | None:
        """The bitmap that Arrow uses; None if nothing is missing."""
        if not self.missing:
            return None
        validity = [self._known.get(number, np.ones(size, bool)) for number, size in enumerate(self.sizes)]
        return pa.py_buffer(np.packbits(np.concatenate(validity), bitorder="little"))


class _Texts:
    """One array of strings that grows."""

    def __init__(self, pieces: float) -> None:
        self._pieces = pieces
        self._text = np.empty(0, np.uint8)
        self._used = 0
        self._ends: list[NDArray[np.int32]] = [np.zeros(1, np.int32)]
        self._validity = _Validity()

    def add(self, part: pa.StringArray) -> None:
        text, offsets = np.frombuffer(text_of(part), np.uint8), offsets_of(part)
        end = self._used + len(text)
        if end > _MAX_TEXT_BYTES:  # then `joined` returns None
            self._used = end
            return
        if end > len(self._text):
            capacity = int(len(text) * self._pieces * _SIZE_MARGIN) if not self._used else int(end * _GROWTH_FACTOR)
            # Its pages are not cleared before they are written.
            grown = np.empty(max(capacity, end, _MIN_CAPACITY_BYTES), np.uint8)
            grown[: self._used] = self._text[: self._used]
            self._text = grown
        self._text[self._used : end] = text
        self._ends.append(offsets[1:] + np.int32(self._used - int(offsets[0])))
        self._validity.add(part)
        self._used = end

    def joined(self, rows: int) -> pa.ChunkedArray | None:
        if self._used > _MAX_TEXT_BYTES:
            return None
        offsets, text = pa.py_buffer(np.concatenate(self._ends)), pa.py_buffer(self._text[: self._used])
        starts = np.cumsum([0, *self._validity.sizes])
        count, buffers = int(starts[-1]), [self._validity.buffer(), offsets, text]
        column = pa.Array.from_buffers(pa.string(), count, buffers, self._validity.missing)
        for start in range(0, count, rows):
            stop = min(start + rows, count)
            cuts = [start, *starts[(starts > start) & (starts < stop)].tolist(), stop]
            slices = [column[a:b] for a, b in pairwise(cuts)]
            has_values = any(len(values) > values.null_count for values in slices)
            if has_values and not any(surely_text(values) for values in slices):
                return None
        return pa.chunked_array([column], pa.string())


class _Numbers:
    """One array that grows: of int64, or of double after a part that is not of int64."""

    def __init__(self, pieces: float) -> None:
        self._pieces = pieces
        self._values: NDArray[Any] = np.empty(0, np.int64)
        self._used = 0
        self._validity = _Validity()

    def add(self, part: pa.Array) -> None:
        values = part.to_numpy(zero_copy_only=False) if not _is_empty(part) else np.full(len(part), np.nan)
        is_whole = part.type == pa.int64() and not part.null_count
        kind = self._values.dtype if is_whole else np.dtype(np.float64)
        end = self._used + len(values)
        if end > len(self._values) or kind != self._values.dtype:
            capacity = int(len(values) * self._pieces * _SIZE_MARGIN) if not self._used else len(self._values)
            if end > capacity:
                capacity = int(end * _GROWTH_FACTOR)
            grown = np.empty(capacity, kind)  # pages are not cleared before they are written
            grown[: self._used] = self._values[: self._used]
            self._values = grown
        self._values[self._used : end] = values
        self._validity.add(part)
        self._used = end

    def joined(self) -> pa.ChunkedArray:
        values = self._values[: self._used]
        buffers = [self._validity.buffer(), pa.py_buffer(values)]
        kind = pa.from_numpy_dtype(values.dtype)
        column = pa.Array.from_buffers(kind, len(values), buffers, self._validity.missing)
        return pa.chunked_array([column])


def _is_empty(part: pa.Array) -> bool:
    """Whether all cells are missing."""
    return len(part) == part.null_count


def _is_number(part: pa.Array) -> bool:
    """Whether all cells are numbers or missing."""
    return part.type in (pa.int64(), pa.float64()) or _is_empty(part)
