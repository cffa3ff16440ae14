"""Distances on spheres, element by element; arrays of one shape in float64. NaN and infinity give NaN."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from common.concurrency import parallel_map

_BATCH_DIRECTIONS = 1 << 16  # directions at a time, so that intermediate results stay in the processor's cache


def haversine(
    latitude: ArrayLike, longitude: ArrayLike, latitude2: ArrayLike, longitude2: ArrayLike, radius: float = 6_371_000
) -> NDArray[np.float64]:
    """Great-circle distances in the unit of `radius` (metres), from degrees.

    2 r asin(sqrt(sin²(dlat / 2) + cos(lat) cos(lat2) sin²(dlng / 2)))

    >>> haversine([0.0], [0.0], [0.0], [1.0]).round(3)
    array([111194.927])
    """
    lat, lng, lat2, lng2 = (
        np.deg2rad(np.asarray(x, dtype=np.float64)) for x in (latitude, longitude, latitude2, longitude2)
    )
    with np.errstate(invalid="ignore"):
        square = np.sin((lat2 - lat) / 2) ** 2 + np.cos(lat) * np.cos(lat2) * np.sin((lng2 - lng) / 2) ** 2
        return 2 * radius * np.arcsin(np.sqrt(square))


def angular_distance(
    azimuth: ArrayLike,
    zenith: ArrayLike,
    azimuth2: ArrayLike,
    zenith2: ArrayLike,
    *,
    rows: NDArray[np.intp] | None = None,
) -> NDArray[np.float64]:
    """Angles in [0, pi], shape (n,), between directions given by azimuth and zenith, all in radians.

    arccos of the scalar product of the unit vectors, clipped to [-1, 1]: near 0 it is exact to about 1e-8 only. `rows`
    may give the index of the second direction for each of the first, shape (n,); by default it is the one at the same
    position.

    >>> angular_distance([0.0], [0.0], [0.0], [np.pi / 2]).round(6)
    array([1.570796])
    >>> angular_distance([0.0, 0.0], [0.0, 1.0], [0.0, 0.0], [1.0, 0.0], rows=np.array([1, 0]))
    array([0., 0.])
    """
    a, z, a2, z2 = (np.asarray(x, dtype=np.float64) for x in (azimuth, zenith, azimuth2, zenith2))
    angles = np.empty(len(a))

    def compute(start: int) -> None:
        part = slice(start, start + _BATCH_DIRECTIONS)
        partners = part if rows is None else rows[part]
        angles[part] = _angles(a[part], z[part], a2[partners], z2[partners])

    starts = range(0, len(a), _BATCH_DIRECTIONS)
    if len(starts) > 1:
        parallel_map(compute, starts)
    elif starts:
        compute(0)
    return angles


def _angles(
    a: NDArray[np.float64], z: NDArray[np.float64], a2: NDArray[np.float64], z2: NDArray[np.float64]
) -> NDArray[np.float64]:
    with np.errstate(invalid="ignore"):  # set here, because threads do not inherit it from the caller
        product = np.sin(z) * np.sin(z2) * (np.cos(a) * np.cos(a2) + np.sin(a) * np.sin(a2)) + np.cos(z) * np.cos(z2)
    angles: NDArray[np.float64] = np.abs(np.arccos(np.clip(product, -1, 1)))
    return angles
