"""Metrics of detected objects in images: boxes, and points inside boxes. Coordinates in pixels, higher is better."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray

from competitions.scoring.metrics.items import factorized
from competitions.scoring.metrics.pairing import first_come, pairs_of_equal
from competitions.scoring.metrics.ranking import average_precision

if TYPE_CHECKING:
    import pyarrow as pa


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


class Detections(NamedTuple):
    """The labelled boxes of n images: image, label and confidence of each of m, (m,), and its box, (m, 4)."""

    images: NDArray[np.int64]
    labels: NDArray[np.object_]
    confidences: NDArray[np.float64]
    boxes: NDArray[np.float64]
    """x_min, y_min, x_max, y_max"""
    size: int
    """n"""

    @classmethod
    def of(cls, rows: Sequence[Sequence[Detection]] | Detections) -> Detections:
        """The detections of each image."""
        if isinstance(rows, Detections):
            return rows
        found = [detection for row in rows for detection in row]
        return cls(
            np.repeat(np.arange(len(rows)), [len(row) for row in rows]),
            np.fromiter((each.label for each in found), dtype=object, count=len(found)),
            np.array([each.confidence for each in found], dtype=np.float64),
            np.array([each.box for each in found], dtype=np.float64).reshape(-1, 4),
            len(rows),
        )


def mean_average_precision(
    truth: Sequence[Sequence[Detection]] | Detections,
    predicted: Sequence[Sequence[Detection]] | Detections,
    threshold: float = 0.5,
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
    true, found = Detections.of(truth), Detections.of(predicted)
    if true.size != found.size:
        raise ValueError(f"{true.size} and {found.size} images")
    codes, labels = pd.factorize(np.concatenate([true.labels, found.labels]))
    true_label, label = codes[: len(true.labels)], codes[len(true.labels) :]
    order = np.lexsort([-found.confidences, label, found.images])
    label, image, confidence = label[order], found.images[order], found.confidences[order]
    groups, true_groups = image * len(labels) + label, true.images * len(labels) + true_label
    hit, reached = np.zeros(len(order), dtype=bool), np.zeros(len(true.labels), dtype=bool)
    close = [(np.zeros(0, np.int64), np.zeros(0, np.int64))]
    for i, j in pairs_of_equal(groups, true_groups):
        iou = _ious(found.boxes[order[i]], true.boxes[j])
        near = np.flatnonzero(iou > threshold)
        near = near[np.lexsort([-iou[near], i[near]])]
        close.append((i[near], j[near]))
    i, j = (np.concatenate(parts) for parts in zip(*close, strict=True))
    made = first_come(i, j)
    hit[i[made]], reached[j[made]] = True, True
    scores = []
    for each in np.unique(true_label):  # not in the order of their names, which makes no difference for the mean
        mine, missed = label == each, (true_label == each) & ~reached
        neither = true.size - len(np.union1d(image[mine], true.images[true_label == each]))
        outcomes = [hit[mine], np.ones(missed.sum(), bool), np.zeros(neither, bool)]
        scores.append(
            average_precision(np.concatenate(outcomes), np.append(confidence[mine], np.zeros(missed.sum() + neither)))
        )
    return float(np.mean(scores))


def voc_mean_average_precision(
    truth: Sequence[Sequence[Detection]] | Detections,
    predicted: Sequence[Sequence[Detection]] | Detections,
    threshold: float = 0.4,
) -> float:
    """Mean over the classes of the truth of the average precision of PASCAL VOC 2010 (VinBigData).

    Of all images, most confident first (equal ones in the given order), a prediction is a hit if the true box of its
    class and image with the largest IoU, which must be above `threshold`, was not hit before. The AP is the area below
    precision, made monotonous from the right, over recall: section 3.4.1 of the development kit of VOC 2012, which is
    that of 2010. Confidences of classes in the truth must be finite (ValueError).

    >>> image = [Detection("cat", 1.0, (0, 0, 10, 10))]
    >>> voc_mean_average_precision([image, image], [[Detection("cat", 0.9, (0, 0, 10, 9))], []])
    0.5
    """
    true, found = Detections.of(truth), Detections.of(predicted)
    if true.size != found.size:
        raise ValueError(f"{true.size} and {found.size} images")
    order = np.argsort(-found.confidences, kind="stable")
    codes, names = pd.factorize(np.concatenate([true.labels, found.labels[order]]))
    true_label, label = codes[: len(true.labels)], codes[len(true.labels) :]
    if not np.isfinite(found.confidences[order][np.isin(label, true_label)]).all():
        raise ValueError("confidences must be finite")
    groups, true_groups = found.images[order] * len(names) + label, true.images * len(names) + true_label
    largest, nearest = np.zeros(len(order)), np.full(len(order), -1)
    for i, j in pairs_of_equal(groups, true_groups):
        iou = _ious(found.boxes[order[i]], true.boxes[j])
        best_first = np.lexsort([-iou, i])
        best = best_first[np.unique(i[best_first], return_index=True)[1]]
        largest[i[best]], nearest[i[best]] = iou[best], j[best]
    near, hit = np.flatnonzero(largest > threshold), np.zeros(len(order), dtype=bool)
    hit[near[np.unique(nearest[near], return_index=True)[1]]] = True
    scores = []
    for each in np.unique(true_label):
        hits = np.cumsum(hit[label == each])
        precision, recall = hits / np.arange(1, len(hits) + 1), hits / (true_label == each).sum()
        envelope = np.maximum.accumulate(precision[::-1])[::-1]
        scores.append(float((np.diff(recall, prepend=0.0) * envelope).sum()))
    return float(np.mean(scores))


def _ious(predicted: NDArray[np.float64], true: NDArray[np.float64]) -> NDArray[np.float64]:
    """`box_iou` pair by pair, also for NaN and infinity: shapes (n, 4) give (n,)."""
    ax, ay, ax2, ay2 = predicted.T
    bx, by, bx2, by2 = true.T
    with np.errstate(all="ignore"):
        width = np.where(bx2 < ax2, bx2, ax2) - np.where(bx > ax, bx, ax)
        height = np.where(by2 < ay2, by2, ay2) - np.where(by > ay, by, ay)
        inter = np.where(width > 0, width, 0) * np.where(height > 0, height, 0)
        union = (ax2 - ax) * (ay2 - ay) + (bx2 - bx) * (by2 - by) - inter
        return np.where(union > 0, inter / union, 0.0)


def located_counts(
    box_labels: list[str] | pa.Array,
    boxes: ArrayLike,
    point_labels: list[str] | pa.Array,
    points: ArrayLike,
    pages: tuple[ArrayLike, ArrayLike] | None = None,
) -> tuple[int, int, int]:
    """True positives, false positives and false negatives of labelled points on one page or many (Kuzushiji).

    `boxes` (t, 4) are x, y, width, height, `points` (p, 2) x and y. Box by box, the first unused point strictly inside
    with the same label is a true positive; boxes without one are false negatives, unused points false positives.
    `pages` are the numbers of the pages of boxes and points, (t,) and (p,), which by default are on one page.

    >>> located_counts(["a", "b"], [[0, 0, 10, 10], [20, 0, 5, 5]], ["a", "a"], [[1, 1], [2, 2]])
    (1, 1, 1)
    """
    left, top, width, height = np.asarray(boxes, dtype=np.float64).reshape(-1, 4).T
    x, y = np.asarray(points, dtype=np.float64).reshape(-1, 2).T
    page, point_page = pages or (np.zeros(len(left), np.int64), np.zeros(len(x), np.int64))
    if len(box_labels) != len(left) or len(point_labels) != len(x):
        raise ValueError("each box and each point needs a label")
    codes, distinct = factorized(box_labels, point_labels)
    keys = np.concatenate([page, point_page]).astype(np.int64) * max(distinct, 1) + codes
    inside = [np.zeros((2, 0), np.int64)]
    for i, j in pairs_of_equal(keys[: len(left)], keys[len(left) :]):
        within = (left[i] < x[j]) & (x[j] < left[i] + width[i]) & (top[i] < y[j]) & (y[j] < top[i] + height[i])
        inside.append(np.stack([i[within], j[within]]))
    hits = int(first_come(*np.concatenate(inside, axis=1)).sum())
    return hits, len(x) - hits, len(left) - hits
