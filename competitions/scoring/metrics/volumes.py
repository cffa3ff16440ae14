"""Distances of voxel sets in 3D."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.spatial import KDTree

Scale = NDArray[np.float64]
_BLOCK = np.array([2, 4, 4])
_SAMPLE = 64  # voxels that are measured first
_LEAF = 40  # points of a leaf: the tree is asked for few voxels, and to build one with smaller leaves takes longer
_ROUNDED = 1 + 1e-9  # more than distances lose by rounding


def scaled_hausdorff(truth: NDArray[np.bool_], predicted: NDArray[np.bool_]) -> float:
    """Hausdorff distance of two boolean volumes (slices, height, width) in units of the true volume's diagonal.

    Coordinates are divided by the shape of `truth`, the distance by sqrt(3): 0 (equal) to 1; lower is better. NaN if
    both are empty; 1 if one is, or if the prediction has more than ten times as many voxels. Above 1 only where the
    predicted volume is the larger one.

    >>> a, b = np.zeros((1, 4, 4), dtype=bool), np.zeros((1, 4, 4), dtype=bool)
    >>> a[0, 0, 0] = b[0, 0, 2] = True
    >>> round(scaled_hausdorff(a, b), 6)
    0.288675
    """
    one, other = (Voxels.of(volume) for volume in (truth, predicted))
    return float(hausdorff_of_voxels(one, other, [truth.shape])[0])


class Voxels(NamedTuple):
    """The voxels of n volumes, one volume after the other, in any order and repeated or not; arrays of shape (k,)."""

    volume: NDArray[np.int64]
    """which of the volumes a voxel is in, ascending from 0 to n - 1"""
    slice: NDArray[np.int64]
    row: NDArray[np.int64]
    column: NDArray[np.int64]

    @classmethod
    def of(cls, volume: NDArray[np.bool_]) -> Voxels:
        """Those of one volume where it is true."""
        places = np.nonzero(volume)
        return cls(np.zeros(len(places[0]), dtype=np.int64), *places)


def hausdorff_of_voxels(
    truth: Voxels, predicted: Voxels, shapes: Sequence[Sequence[int]] | NDArray[np.int64]
) -> NDArray[np.float64]:
    """The same of each of n volumes, whose voxels are given: (n,). `shapes` are those of the true volumes.

    Time and memory depend on the boxes around the voxels, not on the volumes.

    >>> one, other = (Voxels(*np.array([[0], [0], [0], [column]])) for column in (0, 2))
    >>> hausdorff_of_voxels(one, other, [(1, 4, 4)]).round(6)
    array([0.288675])
    """
    counts = [np.bincount(side.volume, minlength=len(shapes)) for side in (truth, predicted)]
    either, both = counts[0] + counts[1] > 0, np.flatnonzero((counts[0] > 0) & (counts[1] > 0))
    found = np.where(either, 1.0, np.nan)
    if not len(both):
        return found
    sides = [_Boxed.of(side, each, both) for side, each in zip((truth, predicted), counts, strict=True)]
    low = np.minimum(sides[0].low, sides[1].low)
    box = np.maximum(sides[0].high, sides[1].high) - low + 1
    ends = np.cumsum(box.prod(axis=1))
    starts = ends - box.prod(axis=1)
    true, guess = (side.painted(low, box, starts) for side in sides)
    differ = np.logical_or.reduceat(true != guess, starts)
    found[both[~differ]] = 0.0
    for place in np.flatnonzero(differ).tolist():
        one, other = (each[starts[place] : ends[place]].reshape(box[place]) for each in (true, guess))
        sizes = np.count_nonzero(one), np.count_nonzero(other)
        if sizes[1] > 10 * sizes[0]:
            continue
        scale = np.array(shapes[both[place]], dtype=np.float64)
        larger, smaller = (one, other) if sizes[0] > sizes[1] else (other, one)
        farthest = _farthest(larger, smaller, low[place], scale)  # most likely that of the larger one
        farthest = _farthest(smaller, larger, low[place], scale, farthest)
        found[both[place]] = farthest / float(np.sqrt(3))
    return found


class _Boxed(NamedTuple):
    """Voxels of some volumes, and the box around those of each."""

    voxels: tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]
    counts: NDArray[np.int64]
    low: NDArray[np.int64]
    """(n, 3), as `high`, which is in the box"""
    high: NDArray[np.int64]

    @classmethod
    def of(cls, side: Voxels, counts: NDArray[np.int64], chosen: NDArray[np.intp]) -> _Boxed:
        voxels = (side.slice, side.row, side.column)
        if len(chosen) < len(counts):
            wanted = np.isin(side.volume, chosen)
            voxels = (side.slice[wanted], side.row[wanted], side.column[wanted])
        counts = counts[chosen]
        starts = np.cumsum(counts) - counts
        low, high = (np.stack([f.reduceat(each, starts) for each in voxels], axis=1) for f in (np.minimum, np.maximum))
        return cls(voxels, counts, low, high)

    def painted(self, low: NDArray[np.int64], box: NDArray[np.int64], starts: NDArray[np.int64]) -> NDArray[np.bool_]:
        """The volumes within these boxes as one array, in which that of each begins at these places."""
        found = np.zeros(starts[-1] + box[-1].prod(), dtype=bool)
        first = starts - (low[:, 0] * box[:, 1] + low[:, 1]) * box[:, 2] - low[:, 2]
        first, height, width = (np.repeat(each, self.counts) if len(box) > 1 else each for each in (first, *box.T[1:]))
        found[first + (self.voxels[0] * height + self.voxels[1]) * width + self.voxels[2]] = True
        return found


def _farthest(
    voxels: NDArray[np.bool_], others: NDArray[np.bool_], low: NDArray[np.int64], scale: Scale, least: float = 0.0
) -> float:
    """The largest of the distances of `voxels` to the nearest of `others`, or `least`, if that is larger.

    Both are volumes that begin at `low`. Voxels that are in both have distance 0, and the nearest voxel to one outside
    is on the surface. Unless there is a `least`, distances are measured for some voxels first. Then they are measured
    for one of each block, and then only where a voxel may be farther away than these: it is no farther than the nearest
    other voxel of its row, along each axis, and than the one that is nearest to its block's voxel.
    """
    outside = np.flatnonzero(voxels & ~others)
    if not len(outside):
        return least
    shape = voxels.shape

    def places(found: NDArray[np.intp]) -> NDArray[np.int64]:
        return np.stack(np.unravel_index(found, shape), axis=1)

    surface = np.flatnonzero(_surface(others))
    surface_places = places(surface)

    @cache  # to make it takes longer than what it is asked for
    def tree() -> KDTree:
        return KDTree((surface_places + low) / scale, _LEAF, compact_nodes=False, balanced_tree=False)

    def measured(some: NDArray[np.int64]) -> NDArray[np.float64]:
        distances: NDArray[np.float64] = tree().query((some + low) / scale)[0]
        return distances

    farthest = least or float(measured(places(outside[:: -(-len(outside) // _SAMPLE)])).max())
    most = _within_rows(outside, surface, shape[2]) / scale[2]
    far = most * _ROUNDED > farthest
    rest, most = places(outside[far]), most[far]
    for axes in ((0, 2, 1), (1, 2, 0)):  # rows along the last one
        turned = [_turned(each, axes, shape) for each in (rest, surface_places)]
        most = np.minimum(most, _within_rows(turned[0], np.sort(turned[1]), shape[axes[2]]) / scale[axes[2]])
        far = most * _ROUNDED > farthest
        rest, most = rest[far], most[far]
    if not len(rest):
        return farthest
    blocks = np.ravel_multi_index(tuple((rest // _BLOCK).T), tuple(-(-np.array(shape) // _BLOCK)))
    _, first, block = np.unique(blocks, return_index=True, return_inverse=True)
    distances = measured(rest[first])
    farthest = max(farthest, float(distances.max()))
    apart = np.sqrt((((rest - rest[first][block]) / scale) ** 2).sum(axis=1))
    rest = rest[np.minimum(distances[block] + apart, most) * _ROUNDED > farthest]
    return max(farthest, float(measured(rest).max(initial=0)))


def _turned(places: NDArray[np.int64], axes: tuple[int, int, int], shape: tuple[int, ...]) -> NDArray[np.int64]:
    """The index of each place in a volume of this shape with its axes in this order."""
    one, two, three = axes
    found: NDArray[np.int64] = (places[:, one] * shape[two] + places[:, two]) * shape[three] + places[:, three]
    return found


def _within_rows(places: NDArray[np.int64], others: NDArray[np.int64], width: int) -> NDArray[np.float64]:
    """How far each place is from the nearest other one of its row, infinite where there is none; `others` ascend."""
    after, column = np.searchsorted(others, places), places % width
    left = places - others[np.maximum(after - 1, 0)]
    right = others[np.minimum(after, len(others) - 1)] - places
    found = np.where((left >= 0) & (left <= column), left, np.inf)
    return np.minimum(found, np.where((right >= 0) & (right < width - column), right, np.inf))


def _surface(volume: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """The voxels of which one of the six neighbours is not in the volume."""
    # In one row of all voxels, each neighbour is at a fixed distance, and whole rows are compared at once. Those of
    # voxels at the border are on the other side, but these are on the surface anyway.
    _, height, width = volume.shape
    row, steps = np.ascontiguousarray(volume).reshape(-1), (1, width, height * width)
    inside = np.zeros_like(row)
    margin = steps[-1]
    if len(row) > 2 * margin:
        core = row[margin:-margin].copy()
        for step in steps:
            core &= row[margin - step : -margin - step]
            core &= row[margin + step : len(row) - margin + step]
        inside[margin:-margin] = core
    covered: NDArray[np.bool_] = inside.reshape(volume.shape)
    covered[:, [0, -1]] = False
    covered[:, :, [0, -1]] = False
    return volume & ~covered
