"""Upright 3D boxes against sampling and a literal AP."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
import shapely

from competitions.scoring.metrics import boxes3d
from competitions.scoring.metrics.boxes3d import Box3D, Boxes3D, box_ious, mean_average_precision_3d
from competitions.scoring.metrics.rectangles import shared_areas
from tests.competitions.scoring.metrics import references
from tests.competitions.scoring.metrics.references import inside

CAR = Box3D("car", 1.0, 2742.15, 673.16, -18.65, 1.834, 4.609, 1.648, 2.619)


def random_box(rng: np.random.Generator) -> Box3D:
    x, y, z, width, length, height, yaw = *rng.uniform(-1, 1, 3), *rng.uniform(1, 4, 3), rng.uniform(-4, 4)
    return Box3D("car", 1, x, y, z, width, length, height, yaw)


@pytest.mark.parametrize("seed", range(5))
def test_iou_against_sampled_volumes(seed: int) -> None:
    rng = np.random.default_rng(seed)
    a, b = (random_box(rng) for _ in "ab")
    points = rng.uniform(-4, 4, (400_000, 3))
    p, q = inside(a, points), inside(b, points)
    assert box_ious([a], [b])[0, 0] == pytest.approx((p & q).sum() / (p | q).sum(), abs=0.01)


def test_iou_of_known_pairs() -> None:
    box = Box3D("car", 1, 0, 0, 0, 2, 4, 1, 0)
    assert box_ious([box], [box._replace(x=2.0)])[0, 0] == pytest.approx(1 / 3)
    assert box_ious([box], [box._replace(yaw=math.pi)])[0, 0] == pytest.approx(1)
    assert box_ious([box], [box._replace(yaw=math.pi / 2)])[0, 0] == pytest.approx(4 / 12)
    assert box_ious([box], [box._replace(z=1.0), box._replace(z=np.inf), box._replace(height=np.inf)]).tolist() == [
        [0, 0, 0]
    ]
    assert box_ious([], [box]).shape == (0, 1)


@pytest.mark.parametrize("seed", range(10))
def test_mean_average_precision(seed: int) -> None:
    rng = np.random.default_rng(seed)

    def boxes(count: np.integer[Any]) -> list[Box3D]:
        values = rng.uniform([0, 0, 0, 2, 3, 1, -0.2], [4, 1, 0.3, 2.5, 4, 1.5, 0.2], (int(count), 7))
        return [Box3D(str(rng.choice(["car", "bus"])), float(rng.integers(0, 4)), *row) for row in values]

    truth, predicted = [boxes(rng.integers(1, 5)) for _ in range(6)], [boxes(rng.integers(0, 9)) for _ in range(6)]
    expected = references.mean_average_precision_3d(truth, predicted)
    assert mean_average_precision_3d(truth, predicted) == pytest.approx(expected, rel=1e-12)


def test_perfect_empty_and_foreign_predictions() -> None:
    truth = [[CAR, CAR._replace(label="bus", x=CAR.x + 9)], [CAR]]
    assert mean_average_precision_3d(truth, truth) == pytest.approx(1)
    assert mean_average_precision_3d(truth, [[], []]) == 0
    foreign = CAR._replace(label="Car", width=-1.0)
    assert mean_average_precision_3d(truth, [[*row, foreign] for row in truth]) == pytest.approx(1)


@pytest.mark.parametrize(
    ("change", "hint"),
    [
        ({"x": np.nan}, "NaN"),
        ({"yaw": np.nan}, "NaN"),
        ({"height": 0.0}, "0 or less"),
        ({"width": -1.0}, "0 or less"),
        ({"length": np.inf}, "infinite"),
        ({"y": -np.inf}, "infinite"),
    ],
)
def test_broken_boxes_say_so(change: dict[str, Any], hint: str) -> None:
    assert hint in str(CAR._replace(**change).problem())


def test_infinite_heights_are_legal() -> None:
    changes: list[dict[str, Any]] = [{}, {"z": np.inf}, {"height": np.inf}, {"confidence": np.nan}]
    for change in changes:
        assert CAR._replace(**change).problem() is None


def rectangles(rng: np.random.Generator, count: int) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Corners (n, 4, 2), centres, sides and directions of rectangles, some of them alike, upright or in line."""
    centre = rng.uniform(-3, 3, (count, 2)) if rng.random() < 0.5 else rng.integers(-3, 4, (count, 2)) / 2
    sides = rng.integers(1, 7, (count, 2)) / 2
    angle = rng.choice([0, np.pi / 2, 1e-9, 0.3, rng.uniform(-4, 4)], count)
    direction = np.stack([np.cos(angle), np.sin(angle)], axis=-1)
    along, across = direction, direction[:, ::-1] * [-1, 1]
    signs = np.array([[1, 1], [-1, 1], [-1, -1], [1, -1]])
    steps = signs[None] * sides[:, None] / 2
    corners = centre[:, None] + steps[..., :1] * along[:, None] + steps[..., 1:] * across[:, None]
    return corners, centre, sides, direction


@pytest.mark.parametrize("seed", range(20))
def test_areas_along_edges_are_those_of_polygons(seed: int) -> None:
    rng = np.random.default_rng(seed)
    one, two = rectangles(rng, 500), rectangles(rng, 500)
    expected = shapely.area(shapely.intersection(shapely.polygons(one[0]), shapely.polygons(two[0])))
    assert shared_areas(one[0], *two[1:]) == pytest.approx(expected, abs=1e-9)
    assert shared_areas(one[0], *one[1:]) == pytest.approx(one[2].prod(axis=1))


@pytest.mark.parametrize("seed", range(8))
def test_hits_are_decided_by_exact_overlaps(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where an IoU is at a threshold, and where two of them are equal."""
    rng = np.random.default_rng(seed)
    count = 200
    samples = np.sort(rng.integers(0, 20, count))
    labels = np.array(["car", "bus"], dtype=object)[rng.integers(0, 2, count)]
    numbers = rng.uniform([0, 0, 0, 1, 2, 1, -3], [30, 30, 1, 3, 6, 2, 3], (count, 7))
    others = numbers.copy()
    others[:, 5] *= rng.choice([0.55, 0.6, 0.65, 0.7, 0.75, 0.9, 1.25], count)  # the IoU is a threshold, or nearly so
    twice = np.repeat(np.arange(count), 2)  # each true box is there twice
    confidence = rng.integers(0, 5, count) / 4
    truth = Boxes3D(samples[twice], labels[twice], np.ones(2 * count), numbers[twice], 20)
    guesses = Boxes3D(samples, labels, confidence, others, 20)
    score = mean_average_precision_3d(truth, guesses)
    ious = boxes3d._ious
    monkeypatch.setattr(boxes3d, "_ious", lambda p, q, exact=True: ious(p, q))
    assert score == mean_average_precision_3d(truth, guesses)
