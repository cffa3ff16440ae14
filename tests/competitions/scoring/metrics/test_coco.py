"""COCO's average precision against a literal walk through pycocotools' rules."""

from __future__ import annotations

import numpy as np
import pytest

from competitions.scoring.metrics.coco import coco_average_precision
from tests.competitions.scoring.metrics.references import coco

SMALLEST = [0, 0, 3, 3]


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
    expected = coco(truth, predicted, np.nan_to_num(areas), 0.4, 3, zero)
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
