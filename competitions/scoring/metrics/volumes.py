"""Distances of voxel sets in 3D."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.spatial import KDTree

Scale = NDArray[np.float64]
_BLOCK_VOXELS = np.array([2, 4, 4])
_SAMPLE_VOXELS = 64  # voxels that are measured first
_LEAF_POINTS = 40  # of the tree: there are few queries, and building a tree with smaller leaves takes longer
_ROUNDING_MARGIN = 1 + 1e-9  # rounding errors of distances are smaller


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
    true_voxels, predicted_voxels = (Voxels.of(volume) for volume in (truth, predicted))
    return float(hausdorff_of_voxels(true_voxels, predicted_voxels, [truth.shape])[0])


class Voxels(NamedTuple):
    """The voxels of n volumes, one volume after the other, in any order and repeated or not; arrays of shape (k,)."""

    volume: NDArray[np.int64]
    """which of the volumes a voxel is in, ascending from 0 to n - 1"""
    slice: NDArray[np.int64]
    row: NDArray[np.int64]
    column: NDArray[np.int64]

    @classmethod
    def of(cls, volume: NDArray[np.bool_]) -> Voxels:
        """The voxels of one volume, which are true in it."""
        coordinates = np.nonzero(volume)
        return cls(np.zeros(len(coordinates[0]), dtype=np.int64), *coordinates)


def hausdorff_of_voxels(
    truth: Voxels, predicted: Voxels, shapes: Sequence[Sequence[int]] | NDArray[np.int64]
) -> NDArray[np.float64]:
    """`scaled_hausdorff` of each of n volumes, whose voxels are given: (n,). `shapes` are those of the true volumes.

    Time and memory depend on the boxes around the voxels, not on the volumes.

    >>> true, guess = (Voxels(*np.array([[0], [0], [0], [column]])) for column in (0, 2))
    >>> hausdorff_of_voxels(true, guess, [(1, 4, 4)]).round(6)
    array([0.288675])
    """
    counts = [np.bincount(side.volume, minlength=len(shapes)) for side in (truth, predicted)]
    either, in_both = counts[0] + counts[1] > 0, np.flatnonzero((counts[0] > 0) & (counts[1] > 0))
    distances = np.where(either, 1.0, np.nan)
    if not len(in_both):
        return distances
    sides = [_Boxed.of(side, of_side, in_both) for side, of_side in zip((truth, predicted), counts, strict=True)]
    low = np.minimum(sides[0].low, sides[1].low)
    box = np.maximum(sides[0].high, sides[1].high) - low + 1
    ends = np.cumsum(box.prod(axis=1))
    starts = ends - box.prod(axis=1)
    true, guess = (side.painted(low, box, starts) for side in sides)
    is_different = np.logical_or.reduceat(true != guess, starts)
    distances[in_both[~is_different]] = 0.0
    for number in np.flatnonzero(is_different).tolist():
        part = slice(starts[number], ends[number])
        true_volume, predicted_volume = (volumes[part].reshape(box[number]) for volumes in (true, guess))
        sizes = np.count_nonzero(true_volume), np.count_nonzero(predicted_volume)
        if sizes[1] > 10 * sizes[0]:
            continue
        scale = np.array(shapes[in_both[number]], dtype=np.float64)
        larger, smaller = (true_volume, predicted_volume) if sizes[0] > sizes[1] else (predicted_volume, true_volume)
        farthest = _farthest(larger, smaller, low[number], scale)  # this is most likely the larger distance
        farthest = _farthest(smaller, larger, low[number], scale, farthest)
        distances[in_both[number]] = farthest / float(np.sqrt(3))
    return distances


class _Boxed(NamedTuple):
    """Voxels of some volumes, and the box around the voxels of each volume."""

    voxels: tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]
    counts: NDArray[np.int64]
    low: NDArray[np.int64]
    """(n, 3), like `high`, which is inclusive"""
    high: NDArray[np.int64]

    @classmethod
    def of(cls, side: Voxels, counts: NDArray[np.int64], chosen: NDArray[np.intp]) -> _Boxed:
        voxels = (side.slice, side.row, side.column)
        if len(chosen) < len(counts):
            is_chosen = np.isin(side.volume, chosen)
            voxels = (side.slice[is_chosen], side.row[is_chosen], side.column[is_chosen])
        counts = counts[chosen]
        starts = np.cumsum(counts) - counts
        low = np.stack([np.minimum.reduceat(coordinates, starts) for coordinates in voxels], axis=1)
        high = np.stack([np.maximum.reduceat(coordinates, starts) for coordinates in voxels], axis=1)
        return cls(voxels, counts, low, high)

    def painted(self, low: NDArray[np.int64], box: NDArray[np.int64], starts: NDArray[np.int64]) -> NDArray[np.bool_]:
        """The volumes within these boxes as one array, in which the volumes begin at `starts`."""
        volumes = np.zeros(starts[-1] + box[-1].prod(), dtype=bool)
        offsets = starts - (low[:, 0] * box[:, 1] + low[:, 1]) * box[:, 2] - low[:, 2]
        of_volumes = (offsets, *box.T[1:])
        offsets, height, width = (np.repeat(v, self.counts) if len(box) > 1 else v for v in of_volumes)
        volumes[offsets + (self.voxels[0] * height + self.voxels[1]) * width + self.voxels[2]] = True
        return volumes


def _farthest(
    voxels: NDArray[np.bool_], others: NDArray[np.bool_], low: NDArray[np.int64], scale: Scale, minimum: float = 0.0
) -> float:
    """The largest of the distances of `voxels` to the nearest of `others`, or `minimum`, if that is larger.

    Both are volumes that begin at `low`. Voxels in both volumes have distance 0, and the nearest voxel to one outside
    is on the surface. Without a `minimum`, the distances of some voxels are measured first. Then one voxel of each
    block is measured, and then only voxels that may be farther away than all of these. Upper bounds of a distance are
    the distance to the nearest other voxel of the row, along each axis, and the distance to the voxel that was measured
    in the block plus that voxel's distance.
    """
    outside = np.flatnonzero(voxels & ~others)
    if not len(outside):
        return minimum
    shape = voxels.shape

    def places(indexes: NDArray[np.intp]) -> NDArray[np.int64]:
        return np.stack(np.unravel_index(indexes, shape), axis=1)

    surface = np.flatnonzero(_surface(others))
    surface_places = places(surface)

    @cache  # building the tree takes longer than the queries
    def tree() -> KDTree:
        return KDTree((surface_places + low) / scale, _LEAF_POINTS, compact_nodes=False, balanced_tree=False)

    def measured(coordinates: NDArray[np.int64]) -> NDArray[np.float64]:
        distances: NDArray[np.float64] = tree().query((coordinates + low) / scale)[0]
        return distances

    farthest = minimum or float(measured(places(outside[:: -(-len(outside) // _SAMPLE_VOXELS)])).max())
    bounds = _within_rows(outside, surface, shape[2]) / scale[2]
    far = bounds * _ROUNDING_MARGIN > farthest
    candidates, bounds = places(outside[far]), bounds[far]
    for axes in ((0, 2, 1), (1, 2, 0)):  # rows are along the last axis
        turned = [_turned(positions, axes, shape) for positions in (candidates, surface_places)]
        bounds = np.minimum(bounds, _within_rows(turned[0], np.sort(turned[1]), shape[axes[2]]) / scale[axes[2]])
        far = bounds * _ROUNDING_MARGIN > farthest
        candidates, bounds = candidates[far], bounds[far]
    if not len(candidates):
        return farthest
    blocks = np.ravel_multi_index(tuple((candidates // _BLOCK_VOXELS).T), tuple(-(-np.array(shape) // _BLOCK_VOXELS)))
    _, first_of_block, block = np.unique(blocks, return_index=True, return_inverse=True)
    distances = measured(candidates[first_of_block])
    farthest = max(farthest, float(distances.max()))
    to_block_voxel = np.sqrt((((candidates - candidates[first_of_block][block]) / scale) ** 2).sum(axis=1))
    candidates = candidates[np.minimum(distances[block] + to_block_voxel, bounds) * _ROUNDING_MARGIN > farthest]
    return max(farthest, float(measured(candidates).max(initial=0)))


def _turned(coordinates: NDArray[np.int64], axes: tuple[int, int, int], shape: tuple[int, ...]) -> NDArray[np.int64]:
    """The flat indexes of these coordinates in a volume of this shape whose axes are in this order."""
    i, j, k = axes
    indexes: NDArray[np.int64] = (coordinates[:, i] * shape[j] + coordinates[:, j]) * shape[k] + coordinates[:, k]
    return indexes


def _within_rows(indexes: NDArray[np.int64], other_indexes: NDArray[np.int64], width: int) -> NDArray[np.float64]:
    """The distance of each voxel to the nearest other one in its row, or infinity. `other_indexes` ascend."""
    next_other, column = np.searchsorted(other_indexes, indexes), indexes % width
    to_left = indexes - other_indexes[np.maximum(next_other - 1, 0)]
    to_right = other_indexes[np.minimum(next_other, len(other_indexes) - 1)] - indexes
    distances = np.where((to_left >= 0) & (to_left <= column), to_left, np.inf)
    return np.minimum(distances, np.where((to_right >= 0) & (to_right < width - column), to_right, np.inf))


def _surface(volume: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """The voxels that have one of their six neighbours outside the volume."""
    # In a flat array of all voxels, each neighbour is at a fixed distance, so whole arrays are compared. The neighbours
    # of voxels at the border are at the opposite border, but these voxels are on the surface anyway.
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
