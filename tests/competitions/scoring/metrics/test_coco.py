"""COCO's average precision against a literal walk through pycocotools' rules."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from competitions.scoring.metrics.coco import coco_average_precision

SMALLEST = [0, 0, 3, 3]


def literal(truth: Any, predicted: Any, areas: Any, threshold: float, limit: int, zero: float) -> Any:
    images, labels, boxes = truth
    found_images, found_labels, found_boxes, confidences = predicted

    def iou(a: Any, b: Any) -> float:
        w = min(a[0] + a[2], b[0] + b[2]) - max(a[0], b[0])
        h = min(a[1] + a[3], b[1] + b[3]) - max(a[1], b[1])
        return w * h / (a[2] * a[3] + b[2] * b[3] - w * h) if w > 0 and h > 0 else 0

    cells = []
    for name in sorted(set(labels)):
        pooled = []
        for image in range(max([*images, *found_images]) + 1):
            rows = [i for i in range(len(found_images)) if found_images[i] == image and found_labels[i] == name]
            target = next((i for i in range(len(images)) if images[i] == image and labels[i] == name), None)
            taken = False
            for i in sorted(rows, key=lambda i: -confidences[i])[:limit]:
                hit = target is not None and not taken and iou(found_boxes[i], boxes[target]) >= threshold
                if hit and not (zero and i == 0):
                    taken = True
                if zero and target == 0:
                    hit = False
                pooled.append((confidences[i], hit, not hit and not 0 <= areas[i] <= 1e10))
        pooled.sort(key=lambda entry: -entry[0])
        tp = fp = 0
        points = []
        for _, hit, ignored in pooled:
            tp += hit
            fp += not hit and not ignored
            points.append((tp / sum(x == name for x in labels), tp / (fp + tp + np.spacing(1))))
        for level in np.linspace(0, 1, 101):
            first = next((k for k, point in enumerate(points) if point[0] >= level), None)
            cells.append(0 if first is None else max(point[1] for point in points[first:]))
    return np.mean(cells)


@pytest.mark.parametrize("zero", [False, True])
@pytest.mark.parametrize("seed", range(15))
def test_against_the_literal_rules(seed: int, zero: bool) -> None:
    rng = np.random.default_rng(seed)
    cells = rng.permutation(24)[:14]
    truth = cells // 3, cells % 3, rng.integers(SMALLEST, [5, 5, 8, 8], (14, 4))
    m = int(rng.integers(0, 90))
    predicted = (
        rng.integers(0, 9, m),
        rng.integers(0, 4, m),
        rng.integers(SMALLEST, [5, 5, 8, 8], (m, 4)),
        rng.integers(0, 6, m),
    )
    areas = rng.choice([5.0, -5.0, 2e10, np.nan], m)
    expected = literal(truth, predicted, np.nan_to_num(areas), 0.4, 3, zero)
    got = coco_average_precision(truth, predicted, areas, threshold=0.4, max_detections=3, zero_means_unmatched=zero)
    assert got == pytest.approx(expected, rel=1e-12)


def test_the_published_ids_cost_a_perfect_submission_its_first_hit() -> None:
    truth = [0, 1], [7, 7], [[0, 0, 4, 4], [0, 0, 4, 4]]
    perfect = (*truth, [1.0, 1.0])
    assert coco_average_precision(truth, perfect, [16, 16]) == pytest.approx(1)
    assert coco_average_precision(truth, perfect, [16, 16], zero_means_unmatched=True) < 0.5


def test_nothing_predicted_and_no_classes() -> None:
    assert coco_average_precision(([0], [1], [[0, 0, 1, 1]]), ([], [], [], []), []) == 0
    assert coco_average_precision(([], [], []), ([0], [1], [[0, 0, 1, 1]], [1.0]), [1]) == -1


def test_two_objects_of_a_label_in_an_image_are_not_supported() -> None:
    with pytest.raises(ValueError, match="two objects"):
        coco_average_precision(([0, 0], [1, 1], np.ones((2, 4))), ([], [], [], []), [])
