"""Distances on spheres against vectors in space."""

from __future__ import annotations

import numpy as np
import pytest

from competitions.scoring.metrics.geo import angular_distance, haversine
from tests.competitions.scoring.metrics.references import between_directions, great_circle


@pytest.fixture
def rng() -> np.random.Generator:
    return np.random.default_rng(0)


def test_haversine(rng: np.random.Generator) -> None:
    lat, lat2 = rng.uniform(-90, 90, (2, 100))
    lng, lng2 = rng.uniform(-180, 180, (2, 100))
    lng2[0], lat2[0] = lng[0], lat[0]
    assert haversine(lat, lng, lat2, lng2) == pytest.approx(great_circle(lat, lng, lat2, lng2), rel=1e-9, abs=1e-3)


def test_haversine_passes_on_what_is_missing() -> None:
    assert np.isnan(haversine([0.0, 0.0], [0.0, 0.0], [np.nan, np.inf], [0.0, 0.0])).all()


def test_angular_distance(rng: np.random.Generator) -> None:
    azimuth, azimuth2 = rng.uniform(-10, 10, (2, 100))
    zenith, zenith2 = rng.uniform(-10, 10, (2, 100))
    expected = between_directions(azimuth, zenith, azimuth2, zenith2)
    assert angular_distance(azimuth, zenith, azimuth2, zenith2) == pytest.approx(expected, rel=1e-9, abs=1e-7)


def test_equal_and_opposite_directions() -> None:
    assert angular_distance([1.0], [2.0], [1.0], [2.0])[0] == pytest.approx(0, abs=1e-7)
    assert angular_distance([1], [0], [5], [np.pi])[0] == pytest.approx(np.pi)


@pytest.mark.parametrize("count", [10, 200_000])
@pytest.mark.filterwarnings("error")
def test_infinity_gives_nan_without_a_warning_however_many_there_are(count: int) -> None:
    azimuth, zenith = np.zeros(count), np.zeros(count)
    azimuth[0] = np.inf
    found = angular_distance(azimuth, zenith, zenith, zenith)
    assert np.isnan(found[0])
    assert not found[1:].any()


def test_many_angles_are_those_of_each(rng: np.random.Generator) -> None:
    angles = rng.random((4, 150_000)) * 3
    order = rng.permutation(150_000)
    found = angular_distance(*angles, rows=order)
    for part in np.array_split(np.arange(150_000), 7):
        some = angular_distance(*angles[:2, part], *angles[2:, order[part]])
        assert found[part].tolist() == some.tolist()
