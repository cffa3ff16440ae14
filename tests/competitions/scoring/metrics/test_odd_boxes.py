"""Boxes that are no boxes: what the published graders make of them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from competitions.scoring.metrics.boxes3d import Box3D, problem
from competitions.scoring.metrics.coco import coco_average_precision

NAN, INF = np.nan, np.inf
OBJECTS = [0, 1, 2], [7, 7, 7], [[10, 10, 20, 30]] * 3
CAR = Box3D("car", 1.0, 2_000.0, 1_500.0, -18.0, 1.8, 4.6, 1.6, 0.7)


# Recorded with pycocotools 2.0.11, corners passed as x, y, width, height.
@pytest.mark.parametrize(
    ("box", "score"),
    [
        ([NAN, 10, 20, 30], 0.5544554455445545),  # NaN takes the place of the object's own coordinate: a hit
        ([10, 10, NAN, 30], 0.5544554455445545),
        ([10, NAN, 20, NAN], 0.5544554455445545),
        ([INF, 10, 20, 30], 0.6633663366336634),  # infinite areas are ignored
        ([10, 10, INF, 30], 0.6633663366336634),
        ([-INF, 10, 20, 30], 0.6633663366336634),
        ([10, 10, 1e300, 1e300], 0.6633663366336634),
    ],
)
def test_coco_matches_as_pycocotools(box: list[float], score: float) -> None:
    boxes = np.array([[0, 0, 1, 1], box, [10, 10, 20, 30], [11, 9, 20, 30]], dtype=float)
    with np.errstate(all="ignore"):
        areas = np.prod(boxes[:, 2:] - boxes[:, :2], axis=1)
    predicted = [0, 1, 1, 2], [7, 7, 7, 7], boxes, [0.1, 0.95, 0.9, 0.8]
    assert coco_average_precision(OBJECTS, predicted, areas, zero_means_unmatched=True) == pytest.approx(score)


@pytest.mark.parametrize("change", [{"x": 1e9}, {"y": -1e300}, {"width": 1e6, "length": 3e6}, {"x": INF}])
def test_corners_of_3d_boxes_must_not_be_askew(change: dict[str, Any]) -> None:
    assert "very large" in str(problem([CAR, CAR._replace(**change)]))


def test_ordinary_3d_boxes_are_no_problem() -> None:
    rng = np.random.default_rng(0)
    turned = [
        CAR._replace(yaw=yaw, x=x) for yaw, x in zip(rng.uniform(-4, 4, 500), rng.uniform(-4e3, 4e3, 500), strict=True)
    ]
    assert problem(turned) is None
    assert problem([]) is None
