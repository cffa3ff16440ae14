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

_RIGHT_ANGLE = 1e-8  # square metres
_POLYGONS = 2000  # pairs of polygons intersected at a time
_AT_ONCE = 2048  # pairs whose nearly exact IoUs are computed at a time, in memory that is used again
_NEARLY = 1e-6  # more than IoUs of ordinary boxes differ, whether computed from polygons or from edges
_ORDINARY = (0.05, 1e3, 1e5)  # metres: the smallest and the largest size, and the largest coordinate
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
    if not (np.abs(products) <= _RIGHT_ANGLE).all():
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
    known, group, objects = np.unique(true_groups, return_inverse=True, return_counts=True)
    wanted = np.flatnonzero(np.isin(groups, known))
    order = _by_confidence(guesses.confidences, groups, wanted)
    best, target = _best((guesses.numbers[order], groups[order]), (true.numbers, true_groups), thresholds)
    mine = np.searchsorted(known, groups[order])  # ascending
    shares: dict[int, NDArray[np.float64]] = {}
    counts = [int(np.count_nonzero(best > threshold)) for threshold in thresholds]
    for count, threshold in zip(counts, thresholds, strict=True):
        if count not in shares:  # thresholds that as many boxes exceed are exceeded by the same ones
            shares[count] = _average_precisions(best > threshold, target, mine, objects)
    precisions = [shares[count] for count in counts]
    sample = np.zeros(len(known), dtype=np.int64)
    sample[group] = true.samples
    classes = np.bincount(sample, minlength=true.size)
    if not classes.all() or not true.size:
        return float("nan")
    return float(np.mean([np.bincount(sample, each, minlength=true.size) / classes for each in precisions]))


def _by_confidence(
    confidences: NDArray[np.float64], groups: NDArray[np.int64], wanted: NDArray[np.intp]
) -> NDArray[np.intp]:
    """The wanted boxes by group, and most confident first in each; equal ones in their order."""
    order = wanted[np.lexsort([-confidences[wanted], groups[wanted]])]
    for group in np.unique(groups[wanted][np.isnan(confidences[wanted])]):
        # Which place NaN gets depends on the sorting algorithm: as published, it is Python's.
        members = wanted[groups[wanted] == group].tolist()
        order[groups[order] == group] = sorted(members, key=confidences.tolist().__getitem__, reverse=True)
    return order


def joint_groups(a: Boxes3D, b: Boxes3D) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """A number for each box of both: equal if, and only if, sample and label are equal; ascending with the sample."""
    codes, labels = pd.factorize(np.concatenate([a.labels, b.labels]))
    mine, others = codes[: len(a.labels)].astype(np.int64), codes[len(a.labels) :].astype(np.int64)
    return a.samples * len(labels) + mine, b.samples * len(labels) + others


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

    Those of ordinary boxes differ by less than `_NEARLY` from what polygons give unless they must be `exact`.
    """
    with np.errstate(invalid="ignore"):
        top = np.minimum(p[:, 2] + p[:, 5] / 2, q[:, 2] + q[:, 5] / 2)
        bottom = np.maximum(p[:, 2] - p[:, 5] / 2, q[:, 2] - q[:, 5] / 2)
        depth = np.fmax(top - bottom, 0)
        reach = np.hypot(p[:, 3], p[:, 4]) / 2 + np.hypot(q[:, 3], q[:, 4]) / 2
        near = (depth > 0) & (np.hypot(p[:, 0] - q[:, 0], p[:, 1] - q[:, 1]) <= reach)
        some = np.flatnonzero(near)  # few pairs are close enough to need the polygons
        p, q, depth = p[some], q[some], depth[some]
        shared = (_ground_overlaps(p, q) if exact else _nearly_ground_overlaps(p, q)) * depth
        union = p[:, 3:6].prod(axis=1) + q[:, 3:6].prod(axis=1) - shared
        found = np.zeros(len(near))
        found[some] = np.clip(shared / union, 0, 1)
    return found


def _ground_overlaps(p: NDArray[np.float64], q: NDArray[np.float64]) -> NDArray[np.float64]:
    """Areas shared by the ground rectangles, pair by pair, computed on all cores."""

    def areas(some: slice) -> NDArray[np.float64]:
        found: NDArray[np.float64] = shapely.area(shapely.intersection(_rectangles(p[some]), _rectangles(q[some])))
        return found

    parts = [slice(start, start + _POLYGONS) for start in range(0, len(p), _POLYGONS)]
    return areas(slice(None)) if len(parts) < 2 else np.concatenate(parallel_map(areas, parts))


def _nearly_ground_overlaps(p: NDArray[np.float64], q: NDArray[np.float64]) -> NDArray[np.float64]:
    """Like `_ground_overlaps`, but of ordinary boxes without polygons."""
    smallest, largest, farthest = _ORDINARY
    sizes = np.hstack([p[:, 3:6], q[:, 3:6]])
    places = np.abs(np.hstack([p[:, :3], q[:, :3]]))
    ordinary = (sizes >= smallest).all(axis=1) & (sizes <= largest).all(axis=1) & (places <= farthest).all(axis=1)
    found = np.empty(len(p))
    found[~ordinary] = _ground_overlaps(p[~ordinary], q[~ordinary])
    p, q = p[ordinary], q[ordinary]
    found[ordinary] = shared_areas(_corners(p), q[:, :2], q[:, [4, 3]], np.stack(_direction(q[:, 6]), axis=-1))
    return found


def _best(
    predicted: tuple[NDArray[np.float64], NDArray[np.int64]],
    true: tuple[NDArray[np.float64], NDArray[np.int64]],
    thresholds: Sequence[float],
) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """The largest IoU of each predicted box with a true box of its group, and the first of these; shape (m,) each.

    Both are given as numbers and groups. IoUs are exact where it shows: near a threshold, and where the largest one of
    a box is near another one.
    """
    (numbers, groups), (true_numbers, true_groups) = predicted, true
    best, target = np.zeros(len(numbers)), np.full(len(numbers), -1, dtype=np.int64)
    for i, j in pairs_of_equal(groups, true_groups):
        parts = [slice(start, start + _AT_ONCE) for start in range(0, len(i), _AT_ONCE)]
        found = np.concatenate([_ious(numbers[i[some]], true_numbers[j[some]], exact=False) for some in parts])
        starts = np.flatnonzero(np.diff(i, prepend=-1))
        best[i[starts]] = np.maximum.reduceat(found, starts)
        unclear = _unclear(found, best[i], i, thresholds)
        if len(unclear):
            found[unclear] = _ious(numbers[i[unclear]], true_numbers[j[unclear]])
            best[i[starts]] = np.maximum.reduceat(found, starts)
        largest = np.flatnonzero(found == best[i])
        boxes, first = np.unique(i[largest], return_index=True)
        target[boxes] = j[largest[first]]
    return best, target


def _unclear(
    found: NDArray[np.float64], best: NDArray[np.float64], box: NDArray[np.int64], thresholds: Sequence[float]
) -> NDArray[np.intp]:
    """Which IoUs have to be exact, of pairs of these boxes with this `best` one each."""
    levels = np.sort(np.asarray(thresholds, dtype=np.float64))
    if not len(levels):
        return np.zeros(0, dtype=np.intp)
    # Boxes that are below all thresholds are no hits, whatever their target.
    candidates = np.flatnonzero((found >= best - _NEARLY) & (found >= levels[0] - _NEARLY))
    value = found[candidates]
    above = np.minimum(np.searchsorted(levels, value), len(levels) - 1)
    distance = np.minimum(np.abs(value - levels[above]), np.abs(value - levels[np.maximum(above - 1, 0)]))
    several = np.bincount(box[candidates])[box[candidates]] > 1 if len(candidates) else False
    return candidates[(distance <= _NEARLY) | several]


def _average_precisions(
    above: NDArray[np.bool_], target: NDArray[np.int64], group: NDArray[np.int64], objects: NDArray[np.int64]
) -> NDArray[np.float64]:
    """AP of each group with so many `objects`, from its predictions in order: whether they match a true box, and which.

    The area below the curve is a sum over hits. After each of them precision falls until the next, so that the largest
    precision from a point on is that of one of the hits that follow.
    """
    match = np.flatnonzero(above)
    first = np.full(int(target.max(initial=-1)) + 1, len(above))
    np.minimum.at(first, target[match], match)
    hits = match[first[target[match]] == match]
    mine = group[hits]
    counts, own = (np.bincount(each, minlength=len(objects)) for each in (group, mine))
    before, hits_before = np.cumsum(counts) - counts, np.cumsum(own) - own
    number = np.arange(len(hits)) - hits_before[mine]
    position = hits - before[mine]
    precision = np.zeros((int(number.max(initial=-1)) + 1, len(objects)))
    precision[number, mine] = (number + 1) / (position + 1)
    envelope = np.maximum.accumulate(precision[::-1], axis=0)[::-1]
    total = objects[mine]
    steps = ((number + 1) / total - number / total) * envelope[number, mine]
    found: NDArray[np.float64] = np.bincount(mine, weights=steps, minlength=len(objects)).astype(np.float64)
    return found


def _numbers(boxes: Sequence[Box3D]) -> NDArray[np.float64]:
    return np.array([box[2:] for box in boxes], dtype=np.float64).reshape(-1, 7)


def _rectangles(boxes: NDArray[np.float64]) -> NDArray[np.object_]:
    """Ground rectangles of boxes (n, 7), as shapely polygons."""
    return shapely.polygons(_corners(boxes))


def _corners(boxes: NDArray[np.float64]) -> NDArray[np.float64]:
    """Corners of the ground rectangles of boxes (n, 7), one after the other around it: (n, 4, 2)."""
    x, y, _, width, length, _, yaw = boxes.T
    cos, sin = _direction(yaw)
    along = np.stack([length / 2 * cos, length / 2 * sin], axis=-1)
    across = np.stack([width / 2 * sin, -width / 2 * cos], axis=-1)
    centre = np.stack([x, y], axis=-1)
    corners = [centre + along + across, centre + along - across, centre - along - across, centre - along + across]
    return np.stack(corners, axis=1)


def _direction(yaw: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Cosine and sine, from the quaternion, to the last bit as the published code."""
    w, z = np.cos(yaw / 2), np.sin(yaw / 2)
    return w * w - z * z, 2 * w * z
