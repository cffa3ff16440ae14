"""Boxes and points in images, against literal implementations."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from competitions.scoring.metrics.detection import Detection, box_iou, located_counts, mean_average_precision
from tests.competitions.scoring.metrics.references import located, pooled_detections

BOX = (0.0, 0.0, 10.0, 10.0)


def random_images(rng: np.random.Generator, count: int, boxes: int) -> list[Any]:
    def box() -> tuple[float, float, float, float]:
        x, y = rng.integers(0, 6, 2)
        width, height = rng.integers(3, 7, 2)
        return float(x), float(y), float(x + width), float(y + height)

    return [
        [
            Detection(str(rng.choice(["a", "b"])), float(rng.integers(1, 5)), box())
            for _ in range(rng.integers(0, boxes))
        ]
        for _ in range(count)
    ]


@pytest.mark.parametrize("seed", range(20))
def test_mean_average_precision(seed: int) -> None:
    rng = np.random.default_rng(seed)
    truth, predicted = random_images(rng, 12, 3), random_images(rng, 12, 7)
    assert mean_average_precision(truth, predicted) == pytest.approx(pooled_detections(truth, predicted), rel=1e-12)


def test_an_empty_submission_scores_the_prevalence() -> None:
    assert mean_average_precision([[Detection("a", 1, BOX)], [], [], []], [[], [], [], []]) == 0.25


def test_unknown_classes_do_not_count_even_with_nan() -> None:
    truth = [[Detection("a", 1, BOX)], []]
    assert mean_average_precision(truth, [[Detection("a", 0.5, BOX), Detection("A", np.nan, BOX)], []]) == 1
    with pytest.raises(ValueError, match="finite"):
        mean_average_precision(truth, [[Detection("a", np.nan, BOX)], []])


@pytest.mark.parametrize(
    ("box", "score"),
    [
        (BOX, 1),
        ((0, 0, 10, 5), 0.5),
        ((10, 0, 20, 10), 0),
        ((10, 10, 0, 0), 0),
        ((np.nan, 0, 10, 10), 0),
        ((0, 0, 10, np.nan), 0),
        ((-np.inf, -np.inf, np.inf, np.inf), 0),
        ((5, 5, 5, 5), 0),
    ],
)
def test_box_iou(box: Any, score: float) -> None:
    assert box_iou(box, BOX) == score


@pytest.mark.parametrize("seed", range(20))
def test_located_counts(seed: int) -> None:
    rng = np.random.default_rng(seed)
    boxes, names = rng.integers([0, 0, 2, 2], [10, 10, 12, 12], (rng.integers(0, 8), 4)), "ab"
    points = rng.integers(0, 12, (rng.integers(0, 12), 2)).astype(float)
    labels, guesses = [[names[i] for i in rng.integers(0, 2, len(x))] for x in (boxes, points)]
    assert located_counts(labels, boxes, guesses, points) == located(labels, boxes, guesses, points)


def test_points_that_are_no_places_match_nothing() -> None:
    assert located_counts(["a"], [[0, 0, 9, 9]], ["a", "a"], [[np.nan, 1], [1, np.inf]]) == (0, 2, 1)
