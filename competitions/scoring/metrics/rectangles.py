"""Areas that rotated rectangles share, on arrays: many times faster than with polygons, and nearly as exact."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


def shared_areas(corners: Floats, centre: Floats, sides: Floats, directions: Floats) -> Floats:
    """The area that each rectangle shares with another one, pair by pair, in the square of the unit: (n,).

    The corners are moved into the frame of the other rectangle, in which it covers [-a, a] x [-b, b]. The area is the
    integral of the height of the first rectangle, clipped to [-b, b], over x in [-a, a], taken along its edges.

    Args:
        corners: of the first rectangle of each pair, one after the other around it, (n, 4, 2).
        centre: of the second one, (n, 2).
        sides: its lengths along and across its direction, (n, 2).
        directions: cosine and sine of its direction, (n, 2).

    >>> unit = np.array([[[0.0, 0.0], [1.0, 0.0], [1.0, 1.0], [0.0, 1.0]]])
    >>> shared_areas(unit, np.array([[1.0, 0.5]]), np.array([[1.0, 1.0]]), np.array([[0.0, 1.0]])).round(9)
    array([0.5])
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        x, y = (corners - centre[:, None]).transpose(2, 1, 0)  # (4, n) each
        cos, sin = directions.T
        a, b = sides.T / 2
        return _within(x * cos + y * sin, y * cos - x * sin, a, b)


def _within(x: Floats, y: Floats, a: Floats, b: Floats) -> Floats:
    """Areas of the polygons with these corners, (4, n), within [-a, a] x [-b, b]."""
    x2, y2 = np.roll(x, -1, axis=0), np.roll(y, -1, axis=0)
    slope = (y2 - y) / (x2 - x)
    left, right = np.clip(x, -a, a), np.clip(x2, -a, a)
    width = right - left
    # Rounding must not lead beyond the ends of an edge, which may be almost upright.
    low, high = np.minimum(y, y2), np.maximum(y, y2)
    first, last = (np.clip(y + (end - x) * slope, low, high) for end in (left, right))
    rise = last - first
    down, up = (np.nan_to_num(np.clip((level - first) / rise, 0, 1)) for level in (-b, b))
    one, two = np.minimum(down, up), np.maximum(down, up)  # where the edge enters and leaves the band, as shares of it
    heights = [np.clip(height, -b, b) for height in (first, first + one * rise, first + two * rise, last)]
    mean = (
        (heights[0] + heights[1]) * one
        + (heights[1] + heights[2]) * (two - one)
        + (heights[2] + heights[3]) * (1 - two)
    ) / 2
    areas: Floats = np.abs(np.where(width == 0, 0.0, width * mean).sum(axis=0))
    return areas
