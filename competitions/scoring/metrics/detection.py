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
        detections = [detection for row in rows for detection in row]
        return cls(
            np.repeat(np.arange(len(rows)), [len(row) for row in rows]),
            np.fromiter((detection.label for detection in detections), dtype=object, count=len(detections)),
            np.array([detection.confidence for detection in detections], dtype=np.float64),
            np.array([detection.box for detection in detections], dtype=np.float64).reshape(-1, 4),
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
    true, guesses = Detections.of(truth), Detections.of(predicted)
    if true.size != guesses.size:
        raise ValueError(f"{true.size} and {guesses.size} images")
    codes, labels = pd.factorize(np.concatenate([true.labels, guesses.labels]))
    true_label, label = codes[: len(true.labels)], codes[len(true.labels) :]
    order = np.lexsort([-guesses.confidences, label, guesses.images])
    label, image, confidence = label[order], guesses.images[order], guesses.confidences[order]
    groups, true_groups = image * len(labels) + label, true.images * len(labels) + true_label
    hit, reached = np.zeros(len(order), dtype=bool), np.zeros(len(true.labels), dtype=bool)
    close_pairs = [(np.zeros(0, np.int64), np.zeros(0, np.int64))]
    for i, j in pairs_of_equal(groups, true_groups):
        iou = _ious(guesses.boxes[order[i]], true.boxes[j])
        near = np.flatnonzero(iou > threshold)
        near = near[np.lexsort([-iou[near], i[near]])]
        close_pairs.append((i[near], j[near]))
    i, j = (np.concatenate(parts) for parts in zip(*close_pairs, strict=True))
    matched = first_come(i, j)
    hit[i[matched]], reached[j[matched]] = True, True
    scores = []
    for code in np.unique(true_label):  # the order of classes makes no difference for the mean
        is_class, missed = label == code, (true_label == code) & ~reached
        neither = true.size - len(np.union1d(image[is_class], true.images[true_label == code]))
        outcomes = [hit[is_class], np.ones(missed.sum(), bool), np.zeros(neither, bool)]
        scores.append(
            average_precision(
                np.concatenate(outcomes), np.append(confidence[is_class], np.zeros(missed.sum() + neither))
            )
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
    precision, made monotonic from the right, over recall, as in section 3.4.1 of the development kit of VOC 2012, which
    equals that of 2010. Confidences of classes in the truth must be finite (ValueError).

    >>> image = [Detection("cat", 1.0, (0, 0, 10, 10))]
    >>> voc_mean_average_precision([image, image], [[Detection("cat", 0.9, (0, 0, 10, 9))], []])
    0.5
    """
    true, guesses = Detections.of(truth), Detections.of(predicted)
    if true.size != guesses.size:
        raise ValueError(f"{true.size} and {guesses.size} images")
    order = np.argsort(-guesses.confidences, kind="stable")
    codes, names = pd.factorize(np.concatenate([true.labels, guesses.labels[order]]))
    true_label, label = codes[: len(true.labels)], codes[len(true.labels) :]
    if not np.isfinite(guesses.confidences[order][np.isin(label, true_label)]).all():
        raise ValueError("confidences must be finite")
    groups, true_groups = guesses.images[order] * len(names) + label, true.images * len(names) + true_label
    largest, nearest = np.zeros(len(order)), np.full(len(order), -1)
    for i, j in pairs_of_equal(groups, true_groups):
        iou = _ious(guesses.boxes[order[i]], true.boxes[j])
        best_first = np.lexsort([-iou, i])
        best_pairs = best_first[np.unique(i[best_first], return_index=True)[1]]
        largest[i[best_pairs]], nearest[i[best_pairs]] = iou[best_pairs], j[best_pairs]
    near, hit = np.flatnonzero(largest > threshold), np.zeros(len(order), dtype=bool)
    hit[near[np.unique(nearest[near], return_index=True)[1]]] = True
    scores = []
    for code in np.unique(true_label):
        hits = np.cumsum(hit[label == code])
        precision, recall = hits / np.arange(1, len(hits) + 1), hits / (true_label == code).sum()
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
    x_min, y_min, width, height = np.asarray(boxes, dtype=np.float64).reshape(-1, 4).T
    x, y = np.asarray(points, dtype=np.float64).reshape(-1, 2).T
    page, point_page = pages or (np.zeros(len(x_min), np.int64), np.zeros(len(x), np.int64))
    if len(box_labels) != len(x_min) or len(point_labels) != len(x):
        raise ValueError("each box and each point needs a label")
    codes, distinct = factorized(box_labels, point_labels)
    keys = np.concatenate([page, point_page]).astype(np.int64) * max(distinct, 1) + codes
    inside = [np.zeros((2, 0), np.int64)]
    for i, j in pairs_of_equal(keys[: len(x_min)], keys[len(x_min) :]):
        within = (x_min[i] < x[j]) & (x[j] < x_min[i] + width[i]) & (y_min[i] < y[j]) & (y[j] < y_min[i] + height[i])
        inside.append(np.stack([i[within], j[within]]))
    hits = int(first_come(*np.concatenate(inside, axis=1)).sum())
    return hits, len(x) - hits, len(x_min) - hits
