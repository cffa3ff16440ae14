"""Independent implementations of metrics: literal loops, where no library has the metric."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import stats
from scipy.spatial.distance import directed_hausdorff
from scipy.special import rel_entr
from sklearn import metrics as sk

from competitions.scoring.metrics.boxes3d import THRESHOLDS, Box3D, box_ious
from competitions.scoring.metrics.detection import Detection, box_iou
from competitions.scoring.metrics.probability import EPS
from competitions.scoring.metrics.rle_masks import RleMask

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


def voc_detections(truth: list[list[Detection]], predicted: list[list[Detection]]) -> float:
    """PASCAL VOC 2010's mean average precision at IoU > 0.4, as its development kit computes it."""
    scores = []
    for name in sorted({d.label for image in truth for d in image}):
        boxes = [[d.box for d in image if d.label == name] for image in truth]
        guesses = [(d.confidence, n, d.box) for n, image in enumerate(predicted) for d in image if d.label == name]
        found, hits = set[tuple[int, int]](), []
        for _, image, guess in sorted(guesses, key=lambda each: -each[0]):
            overlaps = [box_iou(guess, box) for box in boxes[image]]
            best = int(np.argmax(overlaps)) if overlaps else -1
            hits.append(best >= 0 and overlaps[best] > 0.4 and (image, best) not in found)
            found |= {(image, best)} if hits[-1] else set()
        total = sum(map(len, boxes))
        recall = [0.0, *(sum(hits[: n + 1]) / total for n in range(len(hits))), 1.0]
        precision = [0.0, *(sum(hits[: n + 1]) / (n + 1) for n in range(len(hits))), 0.0]
        for n in reversed(range(len(precision) - 1)):
            precision[n] = max(precision[n], precision[n + 1])
        scores.append(sum((recall[n + 1] - recall[n]) * precision[n + 1] for n in range(len(recall) - 1)))
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


def painted(mask: RleMask) -> set[int]:
    return {pixel for start, stop in zip(*mask, strict=True) for pixel in range(start, stop)}


def sampled_iou(a: list[Box3D], b: list[Box3D]) -> Any:
    points = np.random.default_rng(0).uniform(-4, 4, (200_000, 3))
    p, q = inside(a[0], points), inside(b[0], points)
    return [[(p & q).sum() / (p | q).sum()]]


def hausdorff(truth: np.ndarray, predicted: np.ndarray) -> float:
    a, b = (np.argwhere(volume) / np.array(truth.shape) for volume in (truth, predicted))
    return float(max(directed_hausdorff(a, b)[0], directed_hausdorff(b, a)[0]) / np.sqrt(3))


def micro_f1(truth: list[str], predicted: list[str]) -> float:
    """Label by label, of those that occur in the truth."""
    counts = []
    for name in {word for row in truth for word in row.split()}:
        true, found = ([name in row.split() for row in rows] for rows in (truth, predicted))
        counts.append((sum(map(min, true, found)), sum(true) + sum(found)))
    hits, total = map(sum, zip(*counts, strict=True))
    return 2 * hits / total


def mean_f1(truth: list[str], predicted: list[str]) -> float:
    """Harmonic mean of precision and recall, row by row."""
    scores = []
    for row, guess in zip(truth, predicted, strict=True):
        true, found = set(row.split()), set(guess.split())
        precision = len(true & found) / len(found) if found else float(not true)
        recall = len(true & found) / len(true) if true else float(not found)
        scores.append(2 * precision * recall / (precision + recall) if precision + recall else 0.0)
    return float(np.mean(scores))


def last(predicted: np.ndarray) -> np.ndarray:
    """NaN as a class of its own, after all others."""
    return np.nan_to_num(predicted, nan=99)


def share_of_equals(truth: np.ndarray, predicted: np.ndarray) -> float:
    return float(np.mean([a == b for a, b in zip(truth, predicted, strict=True)]))


def average_precision_at_k(truth: list[set[str]], ranked: list[list[str]], k: int) -> float:
    scores = []
    for true, guesses in zip(truth, ranked, strict=True):
        first = [g in true and g not in guesses[:i] for i, g in enumerate(guesses[:k])]
        scores.append(sum(sum(first[: i + 1]) / (i + 1) for i, hit in enumerate(first) if hit) / min(len(true), k))
    return float(np.mean(scores))


def kendall(truth: list[list[str]], predicted: list[list[str]]) -> float:
    """Orders of one length: the mean of SciPy's tau of each."""
    taus = [
        stats.kendalltau(range(len(t)), [p.index(item) for item in t])[0] for t, p in zip(truth, predicted, strict=True)
    ]
    return float(np.mean(taus))


def cross_entropy(truth: np.ndarray, predicted: np.ndarray) -> list[float]:
    def one(y: float, p: float) -> float:
        p = min(max(p, EPS), 1 - EPS)
        return -(y * math.log(p) + (1 - y) * math.log(1 - p))

    return [one(y, p) for y, p in zip(truth, predicted, strict=True)]


def divergence(truth: np.ndarray, predicted: np.ndarray) -> float:
    """SciPy's relative entropy of each cell; NaN adds nothing."""
    terms = rel_entr(truth, predicted)
    return float(np.mean(np.where(np.isnan(terms), 0, terms).sum(axis=1)))


def soft_f1(truth: np.ndarray, predicted: np.ndarray) -> float:
    hits = sum(p for p, y in zip(predicted, truth, strict=True) if y)
    return 2 * hits / (sum(predicted) + sum(truth)) if hits else 0.0


def log_mae(truth: np.ndarray, predicted: np.ndarray, groups: np.ndarray) -> float:
    parts = [groups == name for name in np.unique(groups)]
    return float(np.mean([math.log(sk.mean_absolute_error(truth[part], predicted[part])) for part in parts]))


def laplace(truth: np.ndarray, predicted: np.ndarray, confidence: np.ndarray) -> float:
    rows = []
    for t, p, c in zip(truth, predicted, confidence, strict=True):
        sd, delta = max(c, 70), min(abs(t - p), 1000)
        rows.append(-math.sqrt(2) * delta / sd - math.log(math.sqrt(2) * sd))
    return float(np.mean(rows))


def lwlrap(truth: np.ndarray, found: np.ndarray) -> float:
    weights = truth.sum(axis=1)
    kept = weights > 0
    return float(sk.label_ranking_average_precision_score(truth[kept], found[kept], sample_weight=weights[kept]))
