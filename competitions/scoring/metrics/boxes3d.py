"""Mean average precision of upright 3D boxes (Lyft), in metres and radians; higher is better."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import pandas as pd
import shapely
from numpy.typing import NDArray

from common.concurrency import parallel_map
from competitions.scoring.metrics.pairing import pairs_of_equal
from competitions.scoring.metrics.rectangles import shared_areas

_MAX_SCALAR_PRODUCT = 1e-8  # square metres
_POLYGON_PAIRS = 2000  # pairs of polygons intersected at a time
_BATCH_PAIRS = 2048  # pairs whose nearly exact IoUs are computed at a time, so that memory is reused
_IOU_TOLERANCE = 1e-6  # IoUs of ordinary boxes computed from polygons and from edges differ by less
_ORDINARY_METRES = (0.05, 1e3, 1e5)  # of ordinary boxes: the smallest and largest size, and the largest coordinate
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


class Boxes3D(NamedTuple):
    """The boxes of n samples: the sample, label and confidence of each of m boxes, (m,), and its numbers, (m, 7)."""

    samples: NDArray[np.int64]
    labels: NDArray[np.object_]
    confidences: NDArray[np.float64]
    numbers: NDArray[np.float64]
    """x, y, z, width, length, height, yaw, as in `Box3D`"""
    size: int
    """n"""

    @classmethod
    def of(cls, rows: Sequence[Sequence[Box3D]] | Boxes3D) -> Boxes3D:
        """The boxes of each sample."""
        if isinstance(rows, Boxes3D):
            return rows
        boxes = [box for row in rows for box in row]
        labels = np.fromiter((box.label for box in boxes), dtype=object, count=len(boxes))
        confidences = np.array([box.confidence for box in boxes], dtype=np.float64)
        samples = np.repeat(np.arange(len(rows)), [len(row) for row in rows])
        return cls(samples, labels, confidences, _numbers(boxes), len(rows))


def problem(boxes: Sequence[Box3D] | NDArray[np.float64]) -> str | None:
    """Why some of the boxes, or of their numbers (m, 7), cannot be compared with others; None if all can.

    Problems are NaN, sizes that are not positive, infinite numbers (except for z and height), and boxes so large or far
    away that rounding distorts them: the scalar product of two edges must be 0 within 1e-8.
    """
    values = boxes if isinstance(boxes, np.ndarray) else _numbers(boxes)
    if np.isnan(values).any():
        return "a box has NaN as centre, size or yaw"
    if (values[:, 3:6] <= 0).any():
        return "a box has a size of 0 or less"
    with np.errstate(invalid="ignore", over="ignore"):
        corners = _corners(values)
        edges = np.roll(corners, -1, axis=1) - corners
        products = (edges * np.roll(edges, 1, axis=1)).sum(axis=-1)
    if not (np.abs(products) <= _MAX_SCALAR_PRODUCT).all():
        return "a box has an infinite or very large centre, size or yaw"
    return None


def mean_average_precision_3d(
    truth: Sequence[Sequence[Box3D]] | Boxes3D,
    predicted: Sequence[Sequence[Box3D]] | Boxes3D,
    thresholds: Sequence[float] = THRESHOLDS,
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
    true, guesses = Boxes3D.of(truth), Boxes3D.of(predicted)
    if true.size != guesses.size:
        raise ValueError(f"{true.size} and {guesses.size} samples")
    true_groups, groups = joint_groups(true, guesses)
    known_groups, group, objects = np.unique(true_groups, return_inverse=True, return_counts=True)
    relevant = np.flatnonzero(np.isin(groups, known_groups))
    order = _by_confidence(guesses.confidences, groups, relevant)
    best_ious, target = _best((guesses.numbers[order], groups[order]), (true.numbers, true_groups), thresholds)
    group_numbers = np.searchsorted(known_groups, groups[order])  # ascending
    shares: dict[int, NDArray[np.float64]] = {}
    counts = [int(np.count_nonzero(best_ious > threshold)) for threshold in thresholds]
    for count, threshold in zip(counts, thresholds, strict=True):
        if count not in shares:  # thresholds that equally many boxes exceed are exceeded by the same boxes
            shares[count] = _average_precisions(best_ious > threshold, target, group_numbers, objects)
    precisions = [shares[count] for count in counts]
    sample = np.zeros(len(known_groups), dtype=np.int64)
    sample[group] = true.samples
    classes = np.bincount(sample, minlength=true.size)
    if not classes.all() or not true.size:
        return float("nan")
    return float(np.mean([np.bincount(sample, precision, minlength=true.size) / classes for precision in precisions]))


def _by_confidence(
    confidences: NDArray[np.float64], groups: NDArray[np.int64], relevant: NDArray[np.intp]
) -> NDArray[np.intp]:
    """The relevant boxes by group, most confident first in each group; equally confident ones in their order."""
    order = relevant[np.lexsort([-confidences[relevant], groups[relevant]])]
    for group in np.unique(groups[relevant][np.isnan(confidences[relevant])]):
        # The position of NaN depends on the sorting algorithm. The published one is Python's.
        members = relevant[groups[relevant] == group].tolist()
        order[groups[order] == group] = sorted(members, key=confidences.tolist().__getitem__, reverse=True)
    return order


def joint_groups(a: Boxes3D, b: Boxes3D) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """A number for each box of both: equal if, and only if, sample and label are equal; ascending with the sample."""
    codes, labels = pd.factorize(np.concatenate([a.labels, b.labels]))
    a_codes, b_codes = codes[: len(a.labels)].astype(np.int64), codes[len(a.labels) :].astype(np.int64)
    return a.samples * len(labels) + a_codes, b.samples * len(labels) + b_codes


def box_ious(a: Sequence[Box3D], b: Sequence[Box3D]) -> NDArray[np.float64]:
    """Matrix (len(a), len(b)) of intersections over unions of volumes.

    >>> box = Box3D("car", 1.0, 0, 0, 0, 2, 4, 1.5, 0.3)
    >>> box_ious([box], [box, box._replace(z=9.0)]).round(9)
    array([[1., 0.]])
    """
    p, q = _numbers(a), _numbers(b)
    i, j = np.indices((len(p), len(q))).reshape(2, -1)
    return _ious(p[i], q[j]).reshape(len(p), len(q))


def _ious(p: NDArray[np.float64], q: NDArray[np.float64], exact: bool = True) -> NDArray[np.float64]:
    """Intersections over unions of the boxes with these numbers (n, 7), pair by pair: (n,).

    Unless they must be `exact`, IoUs of ordinary boxes may differ by up to `_IOU_TOLERANCE` from those of polygons.
    """
    with np.errstate(invalid="ignore"):
        top = np.minimum(p[:, 2] + p[:, 5] / 2, q[:, 2] + q[:, 5] / 2)
        bottom = np.maximum(p[:, 2] - p[:, 5] / 2, q[:, 2] - q[:, 5] / 2)
        depth = np.fmax(top - bottom, 0)
        reach = np.hypot(p[:, 3], p[:, 4]) / 2 + np.hypot(q[:, 3], q[:, 4]) / 2
        near = (depth > 0) & (np.hypot(p[:, 0] - q[:, 0], p[:, 1] - q[:, 1]) <= reach)
        close_pairs = np.flatnonzero(near)  # few pairs are close enough to need the polygons
        p, q, depth = p[close_pairs], q[close_pairs], depth[close_pairs]
        shared = (_ground_overlaps(p, q) if exact else _nearly_ground_overlaps(p, q)) * depth
        union = p[:, 3:6].prod(axis=1) + q[:, 3:6].prod(axis=1) - shared
        ious = np.zeros(len(near))
        ious[close_pairs] = np.clip(shared / union, 0, 1)
    return ious


def _ground_overlaps(p: NDArray[np.float64], q: NDArray[np.float64]) -> NDArray[np.float64]:
    """Areas shared by the ground rectangles, pair by pair, computed on all cores."""

    def areas(part: slice) -> NDArray[np.float64]:
        shared: NDArray[np.float64] = shapely.area(shapely.intersection(_rectangles(p[part]), _rectangles(q[part])))
        return shared

    parts = [slice(start, start + _POLYGON_PAIRS) for start in range(0, len(p), _POLYGON_PAIRS)]
    return areas(slice(None)) if len(parts) < 2 else np.concatenate(parallel_map(areas, parts))


def _nearly_ground_overlaps(p: NDArray[np.float64], q: NDArray[np.float64]) -> NDArray[np.float64]:
    """Like `_ground_overlaps`, but without polygons for ordinary boxes."""
    smallest, largest, farthest = _ORDINARY_METRES
    sizes = np.hstack([p[:, 3:6], q[:, 3:6]])
    coordinates = np.abs(np.hstack([p[:, :3], q[:, :3]]))
    ordinary = (sizes >= smallest).all(axis=1) & (sizes <= largest).all(axis=1) & (coordinates <= farthest).all(axis=1)
    areas = np.empty(len(p))
    areas[~ordinary] = _ground_overlaps(p[~ordinary], q[~ordinary])
    p, q = p[ordinary], q[ordinary]
    areas[ordinary] = shared_areas(_corners(p), q[:, :2], q[:, [4, 3]], np.stack(_direction(q[:, 6]), axis=-1))
    return areas


def _best(
    predicted: tuple[NDArray[np.float64], NDArray[np.int64]],
    true: tuple[NDArray[np.float64], NDArray[np.int64]],
    thresholds: Sequence[float],
) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """The largest IoU of each predicted box with a true box of its group, and the first of these; shape (m,) each.

    Both are given as numbers and groups. IoUs are exact if it matters: near a threshold, and if the two largest IoUs of
    a box are close to each other.
    """
    (numbers, groups), (true_numbers, true_groups) = predicted, true
    best_ious, target = np.zeros(len(numbers)), np.full(len(numbers), -1, dtype=np.int64)
    for i, j in pairs_of_equal(groups, true_groups):
        parts = [slice(start, start + _BATCH_PAIRS) for start in range(0, len(i), _BATCH_PAIRS)]
        ious = np.concatenate([_ious(numbers[i[part]], true_numbers[j[part]], exact=False) for part in parts])
        starts = np.flatnonzero(np.diff(i, prepend=-1))
        best_ious[i[starts]] = np.maximum.reduceat(ious, starts)
        unclear = _unclear(ious, best_ious[i], i, thresholds)
        if len(unclear):
            ious[unclear] = _ious(numbers[i[unclear]], true_numbers[j[unclear]])
            best_ious[i[starts]] = np.maximum.reduceat(ious, starts)
        largest = np.flatnonzero(ious == best_ious[i])
        boxes, first_pairs = np.unique(i[largest], return_index=True)
        target[boxes] = j[largest[first_pairs]]
    return best_ious, target


def _unclear(
    ious: NDArray[np.float64], best_ious: NDArray[np.float64], box: NDArray[np.int64], thresholds: Sequence[float]
) -> NDArray[np.intp]:
    """The indexes of IoUs that have to be exact. `box` and `best_ious` are the box of each pair and its best IoU."""
    levels = np.sort(np.asarray(thresholds, dtype=np.float64))
    if not len(levels):
        return np.zeros(0, dtype=np.intp)
    # Boxes that are below all thresholds are no hits, whatever their target.
    candidates = np.flatnonzero((ious >= best_ious - _IOU_TOLERANCE) & (ious >= levels[0] - _IOU_TOLERANCE))
    value = ious[candidates]
    next_level = np.minimum(np.searchsorted(levels, value), len(levels) - 1)
    distance = np.minimum(np.abs(value - levels[next_level]), np.abs(value - levels[np.maximum(next_level - 1, 0)]))
    several = np.bincount(box[candidates])[box[candidates]] > 1 if len(candidates) else False
    return candidates[(distance <= _IOU_TOLERANCE) | several]


def _average_precisions(
    matched: NDArray[np.bool_], target: NDArray[np.int64], group: NDArray[np.int64], objects: NDArray[np.int64]
) -> NDArray[np.float64]:
    """AP of each group. `matched` and `target` say whether the predictions, in order, match a true box, and which.

    The area below the curve is a sum over hits. After a hit, precision falls until the next hit, so the largest
    precision from a point on is that of one of the later hits. `objects` are the numbers of true boxes of each group.
    """
    match = np.flatnonzero(matched)
    first_match = np.full(int(target.max(initial=-1)) + 1, len(matched))
    np.minimum.at(first_match, target[match], match)
    hits = match[first_match[target[match]] == match]
    hit_groups = group[hits]
    counts, hit_counts = (np.bincount(numbers, minlength=len(objects)) for numbers in (group, hit_groups))
    predictions_before, hits_before = np.cumsum(counts) - counts, np.cumsum(hit_counts) - hit_counts
    number = np.arange(len(hits)) - hits_before[hit_groups]
    position = hits - predictions_before[hit_groups]
    precision = np.zeros((int(number.max(initial=-1)) + 1, len(objects)))
    precision[number, hit_groups] = (number + 1) / (position + 1)
    envelope = np.maximum.accumulate(precision[::-1], axis=0)[::-1]
    total = objects[hit_groups]
    steps = ((number + 1) / total - number / total) * envelope[number, hit_groups]
    precisions: NDArray[np.float64] = np.bincount(hit_groups, weights=steps, minlength=len(objects)).astype(np.float64)
    return precisions


def _numbers(boxes: Sequence[Box3D]) -> NDArray[np.float64]:
    return np.array([box[2:] for box in boxes], dtype=np.float64).reshape(-1, 7)


def _rectangles(boxes: NDArray[np.float64]) -> NDArray[np.object_]:
    """Ground rectangles of boxes (n, 7), as shapely polygons."""
    return shapely.polygons(_corners(boxes))


def _corners(boxes: NDArray[np.float64]) -> NDArray[np.float64]:
    """Corners of the ground rectangles of boxes (n, 7), in order around each rectangle: (n, 4, 2)."""
    x, y, _, width, length, _, yaw = boxes.T
    cos, sin = _direction(yaw)
    along = np.stack([length / 2 * cos, length / 2 * sin], axis=-1)
    across = np.stack([width / 2 * sin, -width / 2 * cos], axis=-1)
    centre = np.stack([x, y], axis=-1)
    corners = [centre + along + across, centre + along - across, centre - along - across, centre - along + across]
    return np.stack(corners, axis=1)


def _direction(yaw: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Cosine and sine, from the quaternion: equal to those of the published code to the last bit."""
    w, z = np.cos(yaw / 2), np.sin(yaw / 2)
    return w * w - z * z, 2 * w * z
