"""Independent implementations of metrics: literal loops, where no library has the metric."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray
from sklearn import metrics as sk

from competitions.scoring.metrics.boxes3d import THRESHOLDS, Box3D, box_ious
from competitions.scoring.metrics.detection import Detection, box_iou

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]
Columns = tuple[np.ndarray, ...]


def edit_distance(a: str, b: str) -> int:
    row = list(range(len(b) + 1))
    for i, x in enumerate(a, start=1):
        previous, row[0] = row[0], i
        for j, y in enumerate(b, start=1):
            previous, row[j] = row[j], min(row[j] + 1, row[j - 1] + 1, previous + (x != y))
    return row[-1]


def jaccard(a: str, b: str) -> float:
    first, second = set(a.lower().split()), set(b.lower().split())
    common = sum(word in second for word in first)
    either = len(first) + len(second) - common
    return common / either if either else math.nan


def weighted_area(truth: np.ndarray, scores: np.ndarray) -> float:
    """ALASKA2's area: integrate 1 - fpr over the true positive rate, band by band."""
    order = np.argsort(-np.asarray(scores, dtype=float), kind="stable")
    s = np.asarray(scores, dtype=float)[order]
    ends = np.append(np.flatnonzero(np.diff(s)), len(s) - 1)
    y = np.asarray(truth)[order] == 1
    tpr = np.append(0, np.cumsum(y)[ends] / y.sum())
    fpr = np.append(0, np.cumsum(~y)[ends] / (~y).sum())
    area = 0.0
    for (x0, y0), (x1, y1) in pairwise(zip(fpr, tpr, strict=True)):
        for low, high, weight in ((0, 0.4, 2), (0.4, 1, 1)):
            a, b = max(low, y0), min(high, y1)
            if a < b:
                at = lambda t: x0 + (x1 - x0) * (t - y0) / (y1 - y0)  # noqa: E731, B023
                area += weight * (b - a) * (1 - (at(a) + at(b)) / 2)
    return area / 1.4


def bias(truth: Bools, scores: np.ndarray, member: Bools) -> float:
    """Jigsaw's four parts, subset by subset."""
    parts: dict[str, list[float]] = {"subgroup": [], "bpsn": [], "bnsp": []}
    for j in range(member.shape[1]):
        g = member[:, j]
        for name, rows in {
            "subgroup": g,
            "bpsn": (~truth & g) | (truth & ~g),
            "bnsp": (truth & g) | (~truth & ~g),
        }.items():
            parts[name].append(sk.roc_auc_score(truth[rows], scores[rows]))
    means = [np.mean(np.array(aucs) ** -5) ** (-1 / 5) for aucs in parts.values()]
    return float(0.25 * sk.roc_auc_score(truth, scores) + 0.25 * sum(means))


def coco(
    truth: Columns,
    predicted: Columns,
    areas: np.ndarray,
    threshold: float = 0.4,
    limit: int = 100,
    zero: bool = False,
) -> float:
    """A walk through pycocotools' rules."""
    images, labels, boxes = truth
    found_images, found_labels, found_boxes, confidences = predicted

    def iou(a: np.ndarray, b: np.ndarray) -> float:
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
    return float(np.mean(cells))


def area_of_overlap(a: Sequence[float], b: Sequence[float]) -> float:
    """IoU of two boxes with integer corners, cell by cell."""
    cells = [{(x, y) for x in range(int(x0), int(x1)) for y in range(int(y0), int(y1))} for x0, y0, x1, y1 in (a, b)]
    return len(cells[0] & cells[1]) / len(cells[0] | cells[1])


def pooled_detections(truth: list[list[Detection]], predicted: list[list[Detection]]) -> float:
    """SIIM-COVID19's mean average precision."""
    scores = []
    for name in sorted({d.label for image in truth for d in image}):
        ys: list[int] = []
        ss: list[float] = []
        for true, guesses in zip(truth, predicted, strict=True):
            boxes = [d.box for d in true if d.label == name]
            start = len(ys)
            taken: set[int] = set()
            for guess in sorted((d for d in guesses if d.label == name), key=lambda d: d.confidence, reverse=True):
                best, where = 0.5, None
                for j, box in enumerate(boxes):
                    if j not in taken and box_iou(guess.box, box) > best:
                        best, where = box_iou(guess.box, box), j
                if where is not None:
                    taken.add(where)
                ys.append(int(where is not None))
                ss.append(guess.confidence)
            ys += [1] * (len(boxes) - len(taken))
            ss += [0.0] * (len(boxes) - len(taken))
            if len(ys) == start:
                ys.append(0)
                ss.append(0.0)
        scores.append(sk.average_precision_score(ys, ss))
    return float(np.mean(scores))


def located(labels: list[str], boxes: np.ndarray, guesses: list[str], points: np.ndarray) -> tuple[int, int, int]:
    """Kuzushiji's counts, box by box."""
    hits = 0
    used: set[int] = set()
    for name, (x, y, w, h) in zip(labels, boxes, strict=True):
        for k, (guess, (px, py)) in enumerate(zip(guesses, points, strict=True)):
            if k not in used and guess == name and x < px < x + w and y < py < y + h:
                used.add(k)
                hits += 1
                break
    return hits, len(points) - hits, len(boxes) - hits


def inside(box: Box3D, points: Floats) -> Bools:
    """Which of the points (n, 3) lie in an upright 3D box."""
    x, y = points[:, 0] - box.x, points[:, 1] - box.y
    along, across = x * math.cos(box.yaw) + y * math.sin(box.yaw), -x * math.sin(box.yaw) + y * math.cos(box.yaw)
    upright = np.abs(points[:, 2] - box.z) <= box.height / 2
    result: Bools = (np.abs(along) <= box.length / 2) & (np.abs(across) <= box.width / 2) & upright
    return result


def average_precision_3d(guesses: list[Box3D], true: list[Box3D], threshold: float) -> float:
    taken: set[int] = set()
    hits: list[bool] = []
    for guess in sorted(guesses, key=lambda box: box.confidence, reverse=True):
        ious = box_ious([guess], true)[0]
        j = int(np.argmax(ious))
        hits.append(bool(ious[j] > threshold) and j not in taken)
        if hits[-1]:
            taken.add(j)
    if not hits:
        return 0.0
    tp = np.cumsum(hits)
    recall = np.concatenate([[0], tp / len(true), [1]])
    precision = np.concatenate([[0], tp / np.arange(1, len(hits) + 1), [0]])
    for i in range(len(precision) - 2, -1, -1):
        precision[i] = max(precision[i], precision[i + 1])
    steps = [i for i in range(1, len(recall)) if recall[i] != recall[i - 1]]
    return float(sum((recall[i] - recall[i - 1]) * precision[i] for i in steps))


def mean_average_precision_3d(truth: list[list[Box3D]], predicted: list[list[Box3D]]) -> float:
    """Lyft's mean over samples and thresholds."""
    scores = []
    for true, guesses in zip(truth, predicted, strict=True):
        for threshold in THRESHOLDS:
            names = sorted({box.label for box in true})
            of = lambda rows, name: [box for box in rows if box.label == name]  # noqa: E731
            scores.append(
                np.mean([average_precision_3d(of(guesses, name), of(true, name), threshold) for name in names])
            )
    return float(np.mean(scores))


def angle(a: Floats, b: Floats) -> Floats:
    """Angles between vectors (3, n)."""
    angles: Floats = np.arctan2(np.linalg.norm(np.cross(a.T, b.T), axis=1), (a * b).sum(axis=0))
    return angles


def unit(azimuth: Floats, zenith: Floats) -> Floats:
    return np.stack([np.sin(zenith) * np.cos(azimuth), np.sin(zenith) * np.sin(azimuth), np.cos(zenith)])


def great_circle(lat: Floats, lng: Floats, lat2: Floats, lng2: Floats) -> Floats:
    to = np.deg2rad
    return 6_371_000 * angle(unit(to(lng), to(90 - lat)), unit(to(lng2), to(90 - lat2)))


def between_directions(azimuth: Floats, zenith: Floats, azimuth2: Floats, zenith2: Floats) -> Floats:
    return angle(unit(azimuth, zenith), unit(azimuth2, zenith2))
