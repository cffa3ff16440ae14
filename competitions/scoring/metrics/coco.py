"""COCO's average precision of 2D boxes (pycocotools' `COCOeval`, "bbox") at one IoU threshold; higher is better."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

_RECALLS = np.linspace(0, 1, 101)
_LARGEST_AREA = 1e10  # COCO's area range "all"
_EPSILON = float(np.spacing(1))


def coco_average_precision(
    truth: tuple[ArrayLike, ArrayLike, ArrayLike],
    predicted: tuple[ArrayLike, ArrayLike, ArrayLike, ArrayLike],
    areas: ArrayLike,
    *,
    threshold: float = 0.4,
    max_detections: int = 100,
    zero_means_unmatched: bool = False,
) -> float:
    """Interpolated precision, averaged over recall levels 0, 0.01, ..., 1 and over the classes in the truth.

    `truth` = (image, label, box) of n objects, at most one of a label in an image (else ValueError); `predicted` =
    (image, label, box, confidence) of m detections, whose `areas` are (m,). Images are numbers 0, 1, ..., boxes (., 4)
    are x, y, width, height. In each image the `max_detections` most confident of a class count (equal ones in the given
    order); a detection is a hit if its IoU with the object reaches `threshold` and no earlier one took it. Others are
    false positives, unless their area is below 0 or above 1e10. -1 without any class.

    `zero_means_unmatched` reproduces what pycocotools makes of ids that start at 0, where 0 stands for "no match":
    object 0 is never found, and the object that detection 0 takes stays free.

    >>> truth = [0, 1], [7, 7], [[0, 0, 10, 10], [5, 5, 10, 10]]
    >>> coco_average_precision(truth, ([0, 1], [7, 7], [[0, 0, 10, 10], [50, 5, 9, 9]], [0.9, 0.8]), [100, 81])
    0.5049504950495048
    """
    image, label, box = np.asarray(truth[0], dtype=np.int64), np.asarray(truth[1]), _boxes(truth[2])
    predicted_image, predicted_label = np.asarray(predicted[0], dtype=np.int64), np.asarray(predicted[1])
    predicted_box = _boxes(predicted[2])
    confidence, area = np.asarray(predicted[3], dtype=np.float64), np.asarray(areas, dtype=np.float64)
    if len(set(zip(label.tolist(), image.tolist(), strict=True))) < len(label):
        raise ValueError("the truth must not hold two objects of one label in one image")
    precisions = []
    for name in np.unique(label):
        objects = np.flatnonzero(label == name)
        object_of = np.full(max(image.max(), predicted_image.max(initial=0)) + 1, -1)
        object_of[image[objects]] = objects
        chosen = np.flatnonzero(predicted_label == name)
        chosen = chosen[np.lexsort([-confidence[chosen], predicted_image[chosen]])]
        chosen = chosen[_position_in_run(predicted_image[chosen]) < max_detections]
        target = object_of[predicted_image[chosen]]
        # As in pycocotools, NaN coordinates are replaced by the object's own, and an IoU of NaN is a match.
        fits = (target >= 0) & ~(_iou(predicted_box[chosen], box[target]) < threshold)
        takes = fits & (chosen != 0) if zero_means_unmatched else fits
        hit = fits & (_count_before(takes, predicted_image[chosen]) == 0)
        if zero_means_unmatched:
            hit &= target != 0
        ignored = ~hit & ((area[chosen] < 0) | (area[chosen] > _LARGEST_AREA))
        order = np.argsort(-confidence[chosen], kind="stable")
        precisions.append(_precision_at_recalls(hit[order], ignored[order], len(objects)))
    return float(np.mean(np.column_stack(precisions))) if precisions else -1.0


def _precision_at_recalls(hit: NDArray[np.bool_], ignored: NDArray[np.bool_], objects: int) -> NDArray[np.float64]:
    tp, fp = np.cumsum(hit, dtype=np.float64), np.cumsum(~hit & ~ignored, dtype=np.float64)
    precision = tp / (fp + tp + _EPSILON)
    envelope = np.maximum.accumulate(precision[::-1])[::-1]
    indexes = np.searchsorted(tp / objects, _RECALLS, side="left")
    return np.append(envelope, 0.0)[indexes]


def _iou(a: NDArray[np.float64], b: NDArray[np.float64]) -> NDArray[np.float64]:
    """IoU of boxes (n, 4) as x, y, width, height, pair by pair."""
    with np.errstate(all="ignore"):
        width = np.fmin(a[:, 0] + a[:, 2], b[:, 0] + b[:, 2]) - np.fmax(a[:, 0], b[:, 0])
        height = np.fmin(a[:, 1] + a[:, 3], b[:, 1] + b[:, 3]) - np.fmax(a[:, 1], b[:, 1])
        inter = width * height
        iou = inter / (a[:, 2] * a[:, 3] + b[:, 2] * b[:, 3] - inter)
    return np.where((width <= 0) | (height <= 0), 0.0, iou)


def _position_in_run(values: NDArray[np.int64]) -> NDArray[np.int64]:
    """0, 1, 2 ... within each run of equal values."""
    index = np.arange(len(values))
    starts = np.diff(values, prepend=-1) != 0
    return index - np.maximum.accumulate(np.where(starts, index, 0))


def _count_before(flags: NDArray[np.bool_], groups: NDArray[np.int64]) -> NDArray[np.int64]:
    """Number of flags set earlier in the same run of equal groups."""
    counts: NDArray[np.int64] = np.cumsum(flags) - flags
    return counts - counts[np.arange(len(flags)) - _position_in_run(groups)]


def _boxes(boxes: ArrayLike) -> NDArray[np.float64]:
    return np.asarray(boxes, dtype=np.float64).reshape(-1, 4)
