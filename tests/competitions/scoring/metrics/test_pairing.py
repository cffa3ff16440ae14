"""Metrics of objects do not depend on how many pairs are compared at a time."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from competitions.scoring.metrics import boxes3d, pairing
from competitions.scoring.metrics.boxes3d import Boxes3D, mean_average_precision_3d
from competitions.scoring.metrics.detection import (
    Detections,
    located_counts,
    mean_average_precision,
    voc_mean_average_precision,
)


def detections(rng: np.random.Generator, rows: int) -> Detections:
    corners = rng.uniform(0, 90, (rows, 2)).round()
    boxes = np.hstack([corners, corners + rng.uniform(1, 60, (rows, 2)).round()])
    labels = np.array(["cat", "dog"], dtype=object)[rng.integers(0, 2, rows)]
    return Detections(rng.integers(0, 4, rows), labels, rng.random(rows).round(2), boxes, 4)


def of_detections(metric: Callable[[Detections, Detections], float]) -> Callable[[np.random.Generator], float]:
    return lambda rng: metric(detections(rng, 120), detections(rng, 150))


def of_points(rng: np.random.Generator) -> tuple[int, int, int]:
    labels, points = rng.integers(0, 3, 200).astype(str).tolist(), rng.uniform(0, 90, (200, 2))
    boxes = np.hstack([rng.uniform(0, 90, (200, 2)), np.full((200, 2), 30.0)])
    return located_counts(labels, boxes, labels, points)


def of_boxes3d(rng: np.random.Generator) -> float:
    numbers = rng.uniform([-9, -9, -1, 1, 3, 1, -3], [9, 9, 1, 3, 6, 2, 3], (200, 7))
    labels = np.array(["car", "bus"], dtype=object)[rng.integers(0, 2, 200)]
    samples = np.arange(200) // 40
    truth, guesses = (
        Boxes3D(samples, labels, rng.random(200), each, 5) for each in (numbers, numbers + rng.normal(0, 0.1, (200, 7)))
    )
    return mean_average_precision_3d(truth, guesses)


@pytest.mark.parametrize(
    "score",
    [
        pytest.param(of_detections(mean_average_precision), id="mean_average_precision"),
        pytest.param(of_detections(voc_mean_average_precision), id="voc_mean_average_precision"),
        pytest.param(of_points, id="located_counts"),
        pytest.param(of_boxes3d, id="mean_average_precision_3d"),
    ],
)
def test_a_score_is_the_same_with_few_pairs_at_a_time(
    score: Callable[[np.random.Generator], object], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pairing, "_BATCH_PAIRS", 1 << 30)
    expected = score(np.random.default_rng(0))
    monkeypatch.setattr(pairing, "_BATCH_PAIRS", 7)
    monkeypatch.setattr(boxes3d, "_BATCH_PAIRS", 3)
    assert score(np.random.default_rng(0)) == expected
