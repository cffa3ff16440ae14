"""Distances of voxel sets in 3D."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from scipy.spatial import KDTree

Scale = NDArray[np.float64]
_BLOCK = np.array([2, 4, 4])


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
    return hausdorff_of_voxels(np.argwhere(truth), np.argwhere(predicted), truth.shape)


def hausdorff_of_voxels(truth: NDArray[np.integer], predicted: NDArray[np.integer], shape: Sequence[int]) -> float:
    """The same of voxels given as coordinates (slice, row, column), shape (k, 3), in any order and repeated or not.

    `shape` is that of the true volume. Time and memory depend on the box around the voxels, not on the volume.

    >>> round(hausdorff_of_voxels(np.array([[0, 0, 0]]), np.array([[0, 0, 2]]), (1, 4, 4)), 6)
    0.288675
    """
    if not len(truth) and not len(predicted):
        return float("nan")
    if not len(truth) or not len(predicted):
        return 1.0
    truth, predicted = (np.ascontiguousarray(voxels.T).T for voxels in (truth, predicted))  # column by column
    low = np.minimum(truth.min(axis=0), predicted.min(axis=0))
    box = np.maximum(truth.max(axis=0), predicted.max(axis=0)) - low + 1
    true, guess = np.zeros(box, dtype=bool), np.zeros(box, dtype=bool)
    for volume, voxels in (true, truth), (guess, predicted):
        volume[tuple((voxels - low).T)] = True
    if np.count_nonzero(guess) > 10 * np.count_nonzero(true):
        return 1.0
    scale = np.array(shape, dtype=np.float64)
    return max(_farthest(true, guess, low, scale), _farthest(guess, true, low, scale)) / float(np.sqrt(3))


def _farthest(voxels: NDArray[np.bool_], others: NDArray[np.bool_], low: NDArray[np.int64], scale: Scale) -> float:
    """The largest of the distances of `voxels` to the nearest of `others`; both are volumes that begin at `low`.

    Voxels that are in both have distance 0, and the nearest voxel to one outside is on the surface. The distance is
    measured for one voxel of each block; then only for blocks that may hold a voxel farther away than all of these.
    """
    places = np.argwhere(voxels & ~others)
    if not len(places):
        return 0.0
    points = (places + low) / scale
    tree = KDTree((np.argwhere(_surface(others)) + low) / scale, compact_nodes=False, balanced_tree=False)
    blocks = np.ravel_multi_index(tuple((places // _BLOCK).T), tuple(-(-np.array(voxels.shape) // _BLOCK)))
    _, first, block = np.unique(blocks, return_index=True, return_inverse=True)
    distances = tree.query(points[first], workers=-1)[0]
    reach = float(np.sqrt((((_BLOCK - 1) / scale) ** 2).sum()))
    farthest = float(distances.max())
    rest = points[(distances + reach * (1 + 1e-9) > farthest)[block]]
    return max(farthest, float(tree.query(rest, workers=-1)[0].max(initial=0)))


def _surface(volume: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """The voxels of which one of the six neighbours is not in the volume."""
    inside = np.zeros_like(volume)
    core = (slice(1, -1),) * 3
    inside[core] = volume[core]
    for axis in range(3):
        for shift in slice(0, -2), slice(2, None):
            inside[core] &= volume[tuple(shift if each == axis else slice(1, -1) for each in range(3))]
    return volume & ~inside
