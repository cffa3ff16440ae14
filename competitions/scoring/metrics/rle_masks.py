"""Run-length encoded (RLE) binary masks, and their metrics.

The text form is `start length start length ...`, with starts counted from 1 along the flattened image (by row or by
column, which makes no difference for the metrics). Masks are compared by run, so an image of a billion pixels takes no
longer than a small one.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

# A bound that is larger than any pixel number; the sum of two such numbers still fits 64 bits.
_MAX_NUMBER = 2**61


class RleMask(NamedTuple):
    """A mask as disjoint, increasing, non-empty runs of pixels, [start, stop) counted from 0; both int64 (k,)."""

    starts: NDArray[np.int64]
    stops: NDArray[np.int64]

    @property
    def area(self) -> int:
        """Number of pixels."""
        return int((self.stops - self.starts).sum())


def parse_rle(cell: str, pixels: int, *, strict: bool = False) -> RleMask:
    """The mask that `cell` encodes, of an image of `pixels` pixels; blank text is an empty mask.

    Pixels beyond the last one are ignored. As published, a single number is an empty mask, and of three numbers the
    second is the length of both runs. Raises ValueError for anything but whole numbers, another odd count, numbers
    below 1, decreasing starts, or runs that overlap; if `strict`, also for every odd count and for runs beyond the last
    pixel.

    >>> parse_rle("1 3 8 9", pixels=10)
    RleMask(starts=array([0, 7]), stops=array([ 3, 10]))
    >>> parse_rle("3 2 4 1", pixels=10)
    Traceback (most recent call last):
    ValueError: runs overlap
    """
    tokens = cell.split()
    try:
        values = np.array([min(max(int(token), -1), _MAX_NUMBER) for token in tokens], dtype=np.int64)
    except ValueError as error:
        raise ValueError("runs must be whole numbers, `start length start length ...`") from error
    starts, lengths = values[0::2], values[1::2]
    if len(tokens) == 3 and not strict:
        lengths = np.repeat(lengths, 2)
    elif len(tokens) % 2 and (len(tokens) != 1 or strict):
        raise ValueError(f"runs are pairs of numbers, not {len(tokens)} numbers")
    if (values < 1).any():
        raise ValueError("starts and lengths must be 1 or more")
    if (np.diff(starts) < 0).any():
        raise ValueError("starts must not decrease")
    if len(tokens) == 1:
        starts = starts[:0]
    stops = np.minimum(starts - 1 + lengths, pixels)
    if strict and (starts - 1 + lengths > pixels).any():
        raise ValueError(f"runs reach beyond the last of {pixels} pixels")
    inside = starts <= pixels
    starts, stops = starts[inside] - 1, stops[inside]
    if (stops[:-1] > starts[1:]).any():
        raise ValueError("runs overlap")
    return RleMask(starts, stops)


def parse_all(cells: Sequence[str], pixels: int | Sequence[int]) -> list[RleMask]:
    """Apply `parse_rle` to each cell. `pixels` is one number for all, or one for each."""
    sizes = [pixels] * len(cells) if isinstance(pixels, int) else pixels
    return [parse_rle(cell, int(size)) for cell, size in zip(cells, sizes, strict=True)]


def encode_rle(mask: NDArray[Any]) -> str:
    """The text form of a flat mask (n,): its maximal runs. Flatten column by column with `mask.ravel(order="F")`.

    >>> encode_rle(np.array([1, 1, 1, 0, 0, 1]))
    '1 3 6 1'
    """
    edges = np.flatnonzero(np.diff(np.asarray(mask).astype(bool).astype(np.int8), prepend=0, append=0))
    starts, stops = edges[0::2], edges[1::2]
    return " ".join(map(str, np.column_stack([starts + 1, stops - starts]).ravel().tolist()))


def to_mask(runs: RleMask, pixels: int) -> NDArray[np.bool_]:
    """The flat boolean mask (pixels,); shape it with `.reshape(height, width)`, or `.reshape(width, height).T`.

    >>> to_mask(parse_rle("2 2", 5), 5).astype(int)
    array([0, 1, 1, 0, 0])
    """
    steps = np.zeros(pixels + 1, dtype=np.int8)
    steps[runs.starts] += 1  # starts are distinct, and so are stops
    steps[runs.stops] -= 1
    return np.cumsum(steps[:pixels], dtype=np.int8).astype(bool)


def overlap(a: RleMask, b: RleMask) -> int:
    """Number of pixels in both masks.

    >>> overlap(parse_rle("1 5", 10), parse_rle("4 4", 10))
    2
    """
    return int((_covered(a, b.stops) - _covered(a, b.starts)).sum())


def dice(truth: RleMask, predicted: RleMask, empty: float = 1.0) -> float:
    """2 |A and B| / (|A| + |B|), in [0, 1]; `empty` if both masks are empty.

    >>> dice(parse_rle("1 4", 10), parse_rle("3 4", 10))
    0.5
    """
    total = truth.area + predicted.area
    return 2 * overlap(truth, predicted) / total if total else empty


def iou(truth: RleMask, predicted: RleMask, empty: float = 1.0) -> float:
    """|A and B| / |A or B|, in [0, 1]; `empty` if both masks are empty.

    >>> iou(parse_rle("1 4", 10), parse_rle("3 4", 10))
    0.3333333333333333
    """
    shared = overlap(truth, predicted)
    either = truth.area + predicted.area - shared
    return shared / either if either else empty


def _covered(runs: RleMask, pixels: NDArray[np.int64]) -> NDArray[np.int64]:
    """Number of pixels of the mask before each of `pixels`."""
    pixels_before = np.concatenate([[0], np.cumsum(runs.stops - runs.starts)])
    index = np.searchsorted(runs.starts, pixels, side="right")
    run = np.maximum(index - 1, 0)
    excess = np.maximum(runs.stops[run] - pixels, 0) if len(runs.starts) else np.zeros_like(pixels)
    return pixels_before[index] - np.where(index > 0, excess, 0)
