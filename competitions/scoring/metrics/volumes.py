"""Distances of voxel sets in 3D."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.spatial import KDTree


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
    true_size, size = int(truth.sum()), int(predicted.sum())
    if not true_size and not size:
        return float("nan")
    if not true_size or not size or size > 10 * true_size:
        return 1.0
    scale = np.array(truth.shape, dtype=np.float64)
    true_voxels, voxels = np.argwhere(truth), np.argwhere(predicted)
    here, there = _not_in(true_voxels, voxels), _not_in(voxels, true_voxels)
    distances = _farthest(here / scale, voxels / scale), _farthest(there / scale, true_voxels / scale)
    return max(distances) / float(np.sqrt(3))


def _not_in(voxels: NDArray[np.int64], others: NDArray[np.int64]) -> NDArray[np.int64]:
    """The voxels that are not among `others`. All other voxels have distance 0."""
    shape = np.maximum(voxels.max(axis=0), others.max(axis=0)) + 1
    a, b = (np.ravel_multi_index(tuple(points.T), tuple(shape)) for points in (voxels, others))
    return voxels[~np.isin(a, b, assume_unique=True)]


def _farthest(points: NDArray[np.float64], others: NDArray[np.float64]) -> float:
    """Directed Hausdorff distance: the largest of the distances to the nearest of `others`."""
    return float(KDTree(others).query(points)[0].max()) if len(points) else 0.0
