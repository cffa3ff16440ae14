"""Hausdorff distance against SciPy's."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.spatial.distance import directed_hausdorff

from competitions.scoring.metrics.volumes import scaled_hausdorff


@pytest.mark.parametrize("seed", range(20))
@pytest.mark.parametrize("shape", [(3, 7, 9), (4, 9, 5)])
def test_against_scipy(seed: int, shape: tuple[int, int, int]) -> None:
    rng = np.random.default_rng(seed)
    truth, predicted = rng.random((3, 7, 9)) < 0.1, rng.random(shape) < rng.choice([0.05, 0.15])
    a, b = (np.argwhere(volume) / np.array(truth.shape) for volume in (truth, predicted))
    expected = max(directed_hausdorff(a, b)[0], directed_hausdorff(b, a)[0]) / np.sqrt(3)
    assert scaled_hausdorff(truth, predicted) == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("shift", [(0, 0, 1), (1, 2, 0), (2, -5, 4)])
@pytest.mark.parametrize("growth", [0.8, 1.0, 1.3])
def test_solids_against_scipy(growth: float, shift: tuple[int, int, int]) -> None:
    """Of solids, most voxels are in both, and the larger one may be far from the other in either direction."""

    def ellipsoid(centre: NDArray[np.float64], radii: NDArray[np.float64]) -> NDArray[np.bool_]:
        places = np.moveaxis(np.indices((16, 44, 52)), 0, -1)
        return np.asarray((((places - centre) / radii) ** 2).sum(axis=-1) <= 1)

    centre, radii = np.array([7.0, 21.0, 25.0]), np.array([5.0, 12.0, 14.0])
    truth, predicted = ellipsoid(centre, radii), ellipsoid(centre + shift, radii * growth)
    predicted[6:9, 19:24, 20:28] = False
    truth[8, 30, 40] = True
    a, b = (np.argwhere(volume) / np.array(truth.shape) for volume in (truth, predicted))
    expected = max(directed_hausdorff(a, b)[0], directed_hausdorff(b, a)[0]) / np.sqrt(3)
    assert scaled_hausdorff(truth, predicted) == pytest.approx(expected, rel=1e-12)


def test_conventions() -> None:
    none, one, all_ = np.zeros((2, 3, 4), bool), np.zeros((2, 3, 4), bool), np.ones((2, 3, 4), bool)
    one[0, 0, 0] = True
    assert np.isnan(scaled_hausdorff(none, none))
    assert scaled_hausdorff(one, one) == 0
    assert scaled_hausdorff(one, none) == scaled_hausdorff(none, one) == 1
    assert scaled_hausdorff(one, all_) == 1  # more than ten times as many voxels
    assert scaled_hausdorff(all_, one) < 1
