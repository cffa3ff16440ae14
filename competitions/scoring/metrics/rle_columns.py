"""Run-length encoded masks of many images as flat arrays: parsing, areas and overlaps without loops over images.

`competitions.scoring.metrics.rle_masks` explains the format. Every function gives, for each image, the result of the
function with the singular name in that module.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from competitions.scoring.metrics.rle_masks import RleMask, parse_rle
from competitions.tables.arrays import ordered

_Runs = tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]
"""Row numbers, starts and stops."""
_MAX_DIGITS = 18  # numbers with more digits may not fit 64 bits
_BATCH_ROWS = 2_000  # rows that are parsed or compared at a time, so that memory is reused


class RleMasks(NamedTuple):
    """The masks of n images: all their runs, image by image, as row numbers, starts and stops; int64 (k,) each."""

    rows: NDArray[np.int64]
    starts: NDArray[np.int64]
    stops: NDArray[np.int64]
    size: int
    """n"""

    @property
    def areas(self) -> NDArray[np.int64]:
        """Number of pixels of each mask, shape (n,)."""
        ends = np.append(0, np.cumsum(self.stops - self.starts))
        bounds = np.searchsorted(self.rows, np.arange(self.size + 1))
        return np.diff(ends[bounds])

    def mask(self, row: int) -> RleMask:
        """The mask of one image."""
        start, stop = np.searchsorted(self.rows, [row, row + 1])
        return RleMask(self.starts[start:stop], self.stops[start:stop])

    def pixels(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """The row and the number of each pixel of the masks, in ascending order."""
        lengths = self.stops - self.starts
        before = np.cumsum(lengths) - lengths
        shifts = np.repeat(self.starts - before, lengths)
        return np.repeat(self.rows, lengths), np.arange(int(lengths.sum())) + shifts

    def of(self, rows: slice) -> RleMasks:
        """The masks of consecutive images, which are numbered from 0."""
        start, stop, _ = rows.indices(self.size)
        runs = slice(*np.searchsorted(self.rows, [start, stop]))
        return RleMasks(self.rows[runs] - start, self.starts[runs], self.stops[runs], stop - start)


def parse_column(cells: Sequence[str], pixels: int | Sequence[int], *, strict: bool = False) -> RleMasks:
    """Apply `parse_rle` to each cell. `pixels` is one number for all, or one for each.

    Raises ValueError for the first cell that cannot be decoded, with its number as the second argument.

    >>> parse_column(["1 3 8 9", "", "2 1"], 10).areas
    array([6, 0, 1])
    """
    sizes = np.full(len(cells), pixels, np.int64) if isinstance(pixels, int) else np.asarray(pixels, np.int64)
    parsed = []
    for start in range(0, max(len(cells), 1), _BATCH_ROWS):
        part = slice(start, start + _BATCH_ROWS)
        parsed.append(_parsed(cells[part], sizes[part], start, strict))
    rows, starts, stops = (np.concatenate(parts) for parts in zip(*parsed, strict=True))
    return RleMasks(rows, starts, stops, len(cells))


def _parsed(cells: Sequence[str], sizes: NDArray[np.int64], first_row: int, strict: bool) -> _Runs:
    """The runs of some cells, of which the first has the number `first_row`."""
    tokens = _tokens(cells)
    is_plain, runs = (np.zeros(len(cells), bool), None) if tokens is None else _plain(*tokens, sizes, strict)
    run_lists = [runs] if runs else []
    for row in np.flatnonzero(~is_plain).tolist():  # invalid cells, and lists of one or three numbers
        try:
            starts, stops = parse_rle(cells[row], int(sizes[row]), strict=strict)
        except ValueError as error:
            raise ValueError(str(error), first_row + row) from error
        run_lists.append((np.full(len(starts), row), starts, stops))
    if not run_lists:
        nothing = np.zeros(0, np.int64)
        return nothing, nothing, nothing
    rows, starts, stops = (np.concatenate(parts) for parts in zip(*run_lists, strict=True))
    if len(run_lists) > 1:
        order, rows = ordered(rows)
        starts, stops = starts[order], stops[order]
    return rows + first_row, starts, stops


def overlaps(a: RleMasks, b: RleMasks) -> NDArray[np.int64]:
    """Number of pixels in both masks of each image, shape (n,); the longer one's surplus images are ignored.

    >>> overlaps(parse_column(["1 5", "1 2"], 10), parse_column(["4 4", "7 1"], 10))
    array([2, 0])
    """
    count = min(a.size, b.size)
    reach = int(max(a.stops.max(initial=0), b.stops.max(initial=0))) + 1
    if count and reach > (1 << 62) // count:
        raise ValueError("the images are too large to be compared at once")
    slices = (slice(start, min(start + _BATCH_ROWS, count)) for start in range(0, count, _BATCH_ROWS))
    shared = [_overlaps(a.of(part), b.of(part), reach) for part in slices]
    return np.concatenate([np.zeros(0, np.int64), *shared])


def _overlaps(a: RleMasks, b: RleMasks, reach: int) -> NDArray[np.int64]:
    """`overlaps` for two columns of one length; no mask has a pixel number of `reach` or more."""
    # The images are concatenated to one long image, in which the runs still ascend.
    starts, stops = a.starts + a.rows * reach, a.stops + a.rows * reach
    pixels_before = np.append(0, np.cumsum(stops - starts))

    def covered(positions: NDArray[np.int64]) -> NDArray[np.int64]:
        index = np.searchsorted(starts, positions, side="right")
        excess = np.maximum(stops[np.maximum(index - 1, 0)] - positions, 0) if len(stops) else np.zeros_like(positions)
        return pixels_before[index] - np.where(index > 0, excess, 0)

    shared = covered(b.stops + b.rows * reach) - covered(b.starts + b.rows * reach)
    ends = np.append(0, np.cumsum(shared))
    return np.diff(ends[np.searchsorted(b.rows, np.arange(b.size + 1))])


def dices(truth: RleMasks, predicted: RleMasks, empty: float = 1.0) -> NDArray[np.float64]:
    """2 |A and B| / (|A| + |B|) of each image, in [0, 1]; `empty` if both masks are empty.

    >>> dices(parse_column(["1 4", ""], 10), parse_column(["3 4", ""], 10))
    array([0.5, 1. ])
    """
    shared = overlaps(truth, predicted)
    total = truth.areas[: len(shared)] + predicted.areas[: len(shared)]
    return np.where(total > 0, 2 * shared / np.maximum(total, 1), empty)


def ious(truth: RleMasks, predicted: RleMasks, empty: float = 1.0) -> NDArray[np.float64]:
    """|A and B| / |A or B| of each image, in [0, 1]; `empty` if both masks are empty.

    >>> ious(parse_column(["1 4", ""], 10), parse_column(["3 4", ""], 10)).round(6)
    array([0.333333, 1.      ])
    """
    shared = overlaps(truth, predicted)
    either = truth.areas[: len(shared)] + predicted.areas[: len(shared)] - shared
    return np.where(either > 0, shared / np.maximum(either, 1), empty)


def _tokens(cells: Sequence[str]) -> tuple[NDArray[np.int64], NDArray[np.int64]] | None:
    """The numbers of all cells, and how many each cell has; None for other characters than digits and blanks."""
    text = "\n".join(cells) + "\n"
    if not text.isascii():
        return None
    characters = np.frombuffer(text.encode(), np.uint8)
    digit = characters - np.uint8(ord("0")) < 10  # smaller characters become large ones
    end = characters == ord("\n")
    if not (digit | end | (characters == ord(" "))).all():
        return None
    lines = np.flatnonzero(end)
    if len(lines) != len(cells):
        return None
    edges = np.flatnonzero(digit[1:] != digit[:-1]) + 1
    if digit[0]:
        edges = np.append(0, edges)
    starts, lengths = edges[0::2], edges[1::2] - edges[0::2]
    longest = int(lengths.max(initial=0))
    if longest > _MAX_DIGITS:
        return None
    values = np.zeros(len(starts), np.int64)
    for position in range(longest):
        has_digit = lengths > position
        values[has_digit] = values[has_digit] * 10 + (characters[starts[has_digit] + position] - ord("0"))
    return values, np.diff(np.searchsorted(starts, lines), prepend=0)


def _plain(
    values: NDArray[np.int64], counts: NDArray[np.int64], sizes: NDArray[np.int64], strict: bool
) -> tuple[NDArray[np.bool_], _Runs]:
    """Which cells are valid lists of pairs, and the runs of these cells."""
    even = counts % 2 == 0
    rows = np.repeat(np.arange(len(counts)), counts)
    values, rows = values[even[rows]], rows[even[rows]]
    rows, starts, lengths = rows[0::2], values[0::2] - 1, values[1::2]
    ends = starts + lengths
    stops = np.minimum(ends, sizes[rows])
    same_row = rows[1:] == rows[:-1]
    wrong = (starts < 0) | (lengths < 1)
    # Runs beyond the last pixel are removed before the others are compared, so only they may overlap.
    wrong[1:] |= same_row & ((starts[1:] < starts[:-1]) | ((stops[:-1] > starts[1:]) & (starts[1:] < sizes[rows[1:]])))
    if strict:
        wrong |= ends > sizes[rows]
    is_plain = even.copy()
    is_plain[rows[wrong]] = False
    is_kept = is_plain[rows] & (starts < sizes[rows])
    return is_plain, (rows[is_kept], starts[is_kept], stops[is_kept])
