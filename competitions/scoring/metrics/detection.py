"""Metrics of detected objects in images: boxes, and points inside boxes. Coordinates in pixels, higher is better."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from competitions.scoring.metrics.ranking import average_precision


class Detection(NamedTuple):
    """A labelled box of one image."""

    label: str
    confidence: float
    box: tuple[float, float, float, float]
    """x_min, y_min, x_max, y_max"""


def box_iou(predicted: Sequence[float], true: Sequence[float]) -> float:
    """Intersection over union of two boxes (x_min, y_min, x_max, y_max); 0 where the union is not positive.

    >>> box_iou((0, 0, 2, 2), (1, 0, 3, 2))
    0.3333333333333333
    """
    ax, ay, ax2, ay2 = predicted
    bx, by, bx2, by2 = true
    inter = max(0.0, min(ax2, bx2) - max(ax, bx)) * max(0.0, min(ay2, by2) - max(ay, by))
    union = (ax2 - ax) * (ay2 - ay) + (bx2 - bx) * (by2 - by) - inter
    return inter / union if union > 0 else 0.0


def mean_average_precision(
    truth: Sequence[Sequence[Detection]], predicted: Sequence[Sequence[Detection]], threshold: float = 0.5
) -> float:
    """Mean over the classes of the truth of the average precision of pooled detections (SIIM-COVID19).

    In each image the predictions of a class, most confident first (equal ones in the given order), take the free true
    box of largest IoU, if that is above `threshold`: a positive with its confidence, else a negative. True boxes left
    over are positives of confidence 0; an image without either is one negative of confidence 0. The AP is
    `ranking.average_precision` of all of these. Confidences of classes in the truth must be finite (ValueError).

    >>> image = [Detection("cat", 1.0, (0, 0, 10, 10))]
    >>> mean_average_precision([image, []], [[Detection("cat", 0.9, (0, 0, 10, 9))], []])
    1.0
    """
    classes = sorted({detection.label for image in truth for detection in image})
    return float(np.mean([_class_average_precision(truth, predicted, name, threshold) for name in classes]))


def _class_average_precision(
    truth: Sequence[Sequence[Detection]], predicted: Sequence[Sequence[Detection]], label: str, threshold: float
) -> float:
    pairs: list[tuple[int, float]] = []
    for true_image, image in zip(truth, predicted, strict=True):
        free = [detection.box for detection in true_image if detection.label == label]
        guesses = [detection for detection in image if detection.label == label]
        if not free and not guesses:
            pairs.append((0, 0.0))
        for guess in sorted(guesses, key=lambda detection: -detection.confidence):
            ious = [box_iou(guess.box, box) for box in free]
            best = max(ious, default=0.0)
            if best > threshold:
                del free[ious.index(best)]
            pairs.append((int(best > threshold), guess.confidence))
        pairs.extend((1, 0.0) for _ in free)
    hits, confidences = zip(*pairs, strict=True)
    return average_precision(hits, confidences)


def located_counts(
    box_labels: Sequence[str], boxes: ArrayLike, point_labels: Sequence[str], points: ArrayLike
) -> tuple[int, int, int]:
    """True positives, false positives and false negatives of labelled points on one page (Kuzushiji).

    `boxes` (t, 4) are x, y, width, height, `points` (p, 2) x and y. Box by box, the first unused point strictly inside
    with the same label is a true positive; boxes without one are false negatives, unused points false positives.

    >>> located_counts(["a", "b"], [[0, 0, 10, 10], [20, 0, 5, 5]], ["a", "a"], [[1, 1], [2, 2]])
    (1, 1, 1)
    """
    x, y = np.asarray(points, dtype=np.float64).reshape(-1, 2).T
    names = np.array(point_labels, dtype=object)
    unused: NDArray[np.bool_] = np.ones(len(x), dtype=bool)
    for name, (left, top, width, height) in zip(
        box_labels, np.asarray(boxes, dtype=np.float64).reshape(-1, 4), strict=True
    ):
        inside = unused & (left < x) & (x < left + width) & (top < y) & (y < top + height) & (names == name)
        if inside.any():
            unused[np.argmax(inside)] = False
    hits = len(x) - int(unused.sum())
    return hits, len(x) - hits, len(box_labels) - hits
