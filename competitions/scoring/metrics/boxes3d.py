"""Mean average precision of upright 3D boxes (Lyft), in metres and radians; higher is better."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import shapely
from numpy.typing import NDArray

_RIGHT_ANGLE = 1e-8  # square metres
THRESHOLDS = (0.5, 0.55, 0.6, 0.65, 0.7, 0.75, 0.8, 0.85, 0.9, 0.95)


class Box3D(NamedTuple):
    """An upright box, rotated by `yaw` about the z axis. Length is measured along its direction, width across it."""

    label: str
    confidence: float
    x: float
    y: float
    z: float
    width: float
    length: float
    height: float
    yaw: float

    def problem(self) -> str | None:
        """Why this box cannot be compared with others; None if it can. See the function `problem`."""
        return problem([self])


def problem(boxes: Sequence[Box3D]) -> str | None:
    """Why some of the boxes cannot be compared with others; None if all can.

    Problems are NaN, sizes that are not positive, infinite numbers (except for z and height), and boxes so large or far
    away that rounding distorts them: the scalar product of two edges must be 0 within 1e-8.
    """
    values = _numbers(boxes)
    if np.isnan(values).any():
        return "a box has NaN as centre, size or yaw"
    if (values[:, 3:6] <= 0).any():
        return "a box has a size of 0 or less"
    with np.errstate(invalid="ignore", over="ignore"):
        corners = _corners(values)
        edges = np.roll(corners, -1, axis=1) - corners
        products = (edges * np.roll(edges, 1, axis=1)).sum(axis=-1)
    if not (np.abs(products) <= _RIGHT_ANGLE).all():
        return "a box has an infinite or very large centre, size or yaw"
    return None


def mean_average_precision_3d(
    truth: Sequence[Sequence[Box3D]], predicted: Sequence[Sequence[Box3D]], thresholds: Sequence[float] = THRESHOLDS
) -> float:
    """Mean over samples and IoU `thresholds` of the mean AP over the classes in the sample's truth.

    `truth` and `predicted` are the boxes of each sample. Predictions of a class, most confident first, are hits if the
    true box of largest IoU (and no other) is above the threshold and not hit before. AP is the area below precision
    over recall, precision made non-increasing. Boxes of classes that the truth lacks do not count; others must have
    no `problem`.

    >>> car = Box3D("car", 1.0, 0, 0, 0, 2, 4, 1.5, 0.3)
    >>> mean_average_precision_3d([[car]], [[car._replace(height=1.25)]])
    0.7
    """
    scores = []
    for true_boxes, boxes in zip(truth, predicted, strict=True):
        rows = []
        for name in sorted({box.label for box in true_boxes}):
            true = [box for box in true_boxes if box.label == name]
            guesses = [box for box in boxes if box.label == name]
            guesses.sort(key=lambda box: box.confidence, reverse=True)
            rows.append(_average_precisions(box_ious(guesses, true), thresholds))
        scores.append(np.mean(rows, axis=0))
    return float(np.mean(scores))


def box_ious(a: Sequence[Box3D], b: Sequence[Box3D]) -> NDArray[np.float64]:
    """Matrix (len(a), len(b)) of intersections over unions of volumes.

    >>> box = Box3D("car", 1.0, 0, 0, 0, 2, 4, 1.5, 0.3)
    >>> box_ious([box], [box, box._replace(z=9.0)]).round(9)
    array([[1., 0.]])
    """
    p, q = _numbers(a)[:, None], _numbers(b)[None]
    with np.errstate(invalid="ignore"):
        top = np.minimum(p[..., 2] + p[..., 5] / 2, q[..., 2] + q[..., 5] / 2)
        bottom = np.maximum(p[..., 2] - p[..., 5] / 2, q[..., 2] - q[..., 5] / 2)
        depth = np.fmax(top - bottom, 0)
        reach = np.hypot(p[..., 3], p[..., 4]) / 2 + np.hypot(q[..., 3], q[..., 4]) / 2
        near = (depth > 0) & (np.hypot(p[..., 0] - q[..., 0], p[..., 1] - q[..., 1]) <= reach)
        overlap = np.zeros(near.shape)
        i, j = np.nonzero(near)  # few pairs are close enough to need the polygons
        overlap[i, j] = shapely.area(shapely.intersection(_rectangles(p[i, 0]), _rectangles(q[0, j])))
        shared = overlap * depth
        union = p[..., 3:6].prod(axis=-1) + q[..., 3:6].prod(axis=-1) - shared
        return np.where(near, np.clip(shared / union, 0, 1), 0.0)


def _average_precisions(ious: NDArray[np.float64], thresholds: Sequence[float]) -> list[float]:
    """AP at each threshold, from the IoU of predictions in order (rows) and true boxes (columns)."""
    if not len(ious):
        return [0.0] * len(thresholds)
    best, target = ious.max(axis=1), ious.argmax(axis=1)
    precisions = []
    for threshold in thresholds:
        hit = np.zeros(len(best), dtype=bool)
        above = np.flatnonzero(best > threshold)
        hit[above[np.unique(target[above], return_index=True)[1]]] = True
        precisions.append(_area(np.cumsum(hit), ious.shape[1]))
    return precisions


def _area(hits: NDArray[np.int64], objects: int) -> float:
    recall = np.concatenate([[0.0], hits / objects, [1.0]])
    precision = np.concatenate([[0.0], hits / np.arange(1, len(hits) + 1), [0.0]])
    envelope = np.maximum.accumulate(precision[::-1])[::-1]
    steps = np.flatnonzero(recall[1:] != recall[:-1])
    return float(np.sum((recall[steps + 1] - recall[steps]) * envelope[steps + 1]))


def _numbers(boxes: Sequence[Box3D]) -> NDArray[np.float64]:
    return np.array([box[2:] for box in boxes], dtype=np.float64).reshape(-1, 7)


def _rectangles(boxes: NDArray[np.float64]) -> NDArray[np.object_]:
    """Ground rectangles of boxes (n, 7), as shapely polygons."""
    return shapely.polygons(_corners(boxes))


def _corners(boxes: NDArray[np.float64]) -> NDArray[np.float64]:
    """Corners of the ground rectangles of boxes (n, 7), one after the other around it: (n, 4, 2)."""
    x, y, _, width, length, _, yaw = boxes.T
    w, z = np.cos(yaw / 2), np.sin(yaw / 2)
    cos, sin = w * w - z * z, 2 * w * z  # from the quaternion, to the last bit as the published code
    along = np.stack([length / 2 * cos, length / 2 * sin], axis=-1)
    across = np.stack([width / 2 * sin, -width / 2 * cos], axis=-1)
    centre = np.stack([x, y], axis=-1)
    corners = [centre + along + across, centre + along - across, centre - along - across, centre - along + across]
    return np.stack(corners, axis=1)
