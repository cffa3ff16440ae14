"""Areas that rotated rectangles share, computed on arrays: many times faster than polygons, and nearly as exact."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


def shared_areas(corners: Floats, centre: Floats, sides: Floats, directions: Floats) -> Floats:
    """The area that each rectangle shares with another one, pair by pair, in the square of the unit: (n,).

    The corners are moved into the frame of the other rectangle, in which it covers [-a, a] x [-b, b]. The area is the
    integral of the height of the first rectangle, clipped to [-b, b], over x in [-a, a], taken along its edges.

    Args:
        corners: corners of the first rectangle of each pair, in order around it, (n, 4, 2).
        centre: centres of the second rectangles, (n, 2).
        sides: lengths of the second rectangles along and across their direction, (n, 2).
        directions: cosine and sine of the direction of the second rectangles, (n, 2).

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
    x_start, x_end = np.clip(x, -a, a), np.clip(x2, -a, a)
    width = x_end - x_start
    # Rounding must not lead beyond the ends of an edge, which may be almost upright.
    low, high = np.minimum(y, y2), np.maximum(y, y2)
    y_start, y_end = (np.clip(y + (x_at_end - x) * slope, low, high) for x_at_end in (x_start, x_end))
    rise = y_end - y_start
    down, up = (np.nan_to_num(np.clip((level - y_start) / rise, 0, 1)) for level in (-b, b))
    enter, leave = np.minimum(down, up), np.maximum(down, up)  # where the edge enters and leaves the band, as shares
    heights = [np.clip(height, -b, b) for height in (y_start, y_start + enter * rise, y_start + leave * rise, y_end)]
    mean = (
        (heights[0] + heights[1]) * enter
        + (heights[1] + heights[2]) * (leave - enter)
        + (heights[2] + heights[3]) * (1 - leave)
    ) / 2
    areas: Floats = np.abs(np.where(width == 0, 0.0, width * mean).sum(axis=0))
    return areas
