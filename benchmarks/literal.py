"""Metrics as plain loops over rows, boxes, pixels or table cells: the baseline of case f."""

from __future__ import annotations

from collections import defaultdict
from typing import Any

import numpy as np
import shapely
from numpy.typing import NDArray

from competitions.scoring.metrics.boxes3d import THRESHOLDS, Box3D


def levenshtein(truth: list[str], predicted: list[str]) -> list[int]:
    """Edit distances, computed with the textbook's table of prefixes."""
    distances = []
    for a, b in zip(truth, predicted, strict=True):
        row = list(range(len(b) + 1))
        for i, letter in enumerate(a, 1):
            diagonal, row[0] = row[0], i
            for j, other_letter in enumerate(b, 1):
                diagonal, row[j] = row[j], min(row[j] + 1, row[j - 1] + 1, diagonal + (letter != other_letter))
        distances.append(row[-1])
    return distances


def dice_of_masks(truth: list[str], predicted: list[str], pixels: int) -> list[float]:
    """Dice coefficients of run-length masks, which are decoded to pixels."""
    coefficients = []
    for a, b in zip(truth, predicted, strict=True):
        x, y = _painted(a, pixels), _painted(b, pixels)
        coefficients.append(float(2 * np.logical_and(x, y).sum() / (x.sum() + y.sum())))
    return coefficients


def _painted(cell: str, pixels: int) -> NDArray[np.uint8]:
    mask = np.zeros(pixels, dtype=np.uint8)
    numbers = [int(token) for token in cell.split()]
    for start, length in zip(numbers[0::2], numbers[1::2], strict=True):
        mask[start - 1 : start - 1 + length] = 1
    return mask


def hausdorff(truth: NDArray[np.bool_], predicted: NDArray[np.bool_]) -> float:
    """Hausdorff distance: the largest of all voxels' distances to the nearest voxel of the other volume."""
    scale = np.array(truth.shape, dtype=np.float64)
    a, b = np.argwhere(truth) / scale, np.argwhere(predicted) / scale
    forward = max(float(((b - voxel) ** 2).sum(axis=1).min()) for voxel in a)
    backward = max(float(((a - voxel) ** 2).sum(axis=1).min()) for voxel in b)
    return float(np.sqrt(max(forward, backward)) / np.sqrt(3))


def coco(truth: tuple[Any, Any, Any], predicted: tuple[Any, Any, Any, Any], threshold: float = 0.4) -> float:
    """COCO's average precision: class by class, image by image, detection by detection."""
    objects: dict[tuple[int, int], list[Any]] = defaultdict(list)
    for image, label, box in zip(*truth, strict=True):
        objects[image, label].append(box)
    detections: dict[tuple[int, int], list[Any]] = defaultdict(list)
    for image, label, box, confidence in zip(*predicted, strict=True):
        detections[image, label].append((confidence, box))
    precisions = []
    for label in sorted(set(truth[1])):
        outcomes: list[tuple[float, bool]] = []
        total = 0
        for image in sorted(set(truth[0]) | set(predicted[0])):
            free = list(objects[image, label])
            total += len(free)
            for confidence, box in sorted(detections[image, label], key=lambda detection: -detection[0])[:100]:
                ious = [_iou(box, true_box) for true_box in free]
                hit = bool(ious) and max(ious) >= threshold
                if hit:
                    del free[ious.index(max(ious))]
                outcomes.append((confidence, hit))
        outcomes.sort(key=lambda outcome: -outcome[0])
        tp, recall, precision = 0, [], []
        for rank, (_, hit) in enumerate(outcomes, 1):
            tp += hit
            recall.append(tp / total)
            precision.append(tp / rank)
        for rank in range(len(precision) - 1, 0, -1):
            precision[rank - 1] = max(precision[rank - 1], precision[rank])
        for level in np.linspace(0, 1, 101):
            reached = next((p for r, p in zip(recall, precision, strict=True) if r >= level), 0.0)
            precisions.append(reached)
    return float(np.mean(precisions))


def _iou(a: Any, b: Any) -> float:
    width = min(a[0] + a[2], b[0] + b[2]) - max(a[0], b[0])
    height = min(a[1] + a[3], b[1] + b[3]) - max(a[1], b[1])
    if width <= 0 or height <= 0:
        return 0.0
    return float(width * height / (a[2] * a[3] + b[2] * b[3] - width * height))


def boxes3d(truth: list[list[Box3D]], predicted: list[list[Box3D]]) -> float:
    """Lyft's metric as published: for every threshold and class, every prediction against every true box."""
    scores = []
    for true, guesses in zip(truth, predicted, strict=True):
        per_threshold = []
        for threshold in THRESHOLDS:
            areas = [
                _area(
                    [box for box in true if box.label == name],
                    sorted((box for box in guesses if box.label == name), key=lambda box: -box.confidence),
                    threshold,
                )
                for name in sorted({box.label for box in true})
            ]
            per_threshold.append(np.mean(areas))
        scores.append(np.mean(per_threshold))
    return float(np.mean(scores))


def _area(true: list[Box3D], guesses: list[Box3D], threshold: float) -> float:
    is_taken = [False] * len(true)
    tp, recall, precision = 0, [0.0], [0.0]
    for rank, guess in enumerate(guesses, 1):
        best_iou, best_index = 0.0, -1
        for index, box in enumerate(true):
            iou = _iou3d(guess, box)
            if iou > best_iou:
                best_iou, best_index = iou, index
        if best_iou > threshold and not is_taken[best_index]:
            is_taken[best_index] = True
            tp += 1
        recall.append(tp / len(true))
        precision.append(tp / rank)
    recall.append(1.0)
    precision.append(0.0)
    for rank in range(len(precision) - 1, 0, -1):
        precision[rank - 1] = max(precision[rank - 1], precision[rank])
    return sum((recall[i + 1] - recall[i]) * precision[i + 1] for i in range(len(recall) - 1))


def _iou3d(a: Box3D, b: Box3D) -> float:
    depth = max(0.0, min(a.z + a.height / 2, b.z + b.height / 2) - max(a.z - a.height / 2, b.z - b.height / 2))
    shared = _ground(a).intersection(_ground(b)).area * depth
    return float(shared / (a.width * a.length * a.height + b.width * b.length * b.height - shared))


def _ground(box: Box3D) -> shapely.Polygon:
    cos, sin = np.cos(box.yaw), np.sin(box.yaw)
    corners = []
    for along, across in ((1, 1), (1, -1), (-1, -1), (-1, 1)):
        x, y = along * box.length / 2, across * box.width / 2
        corners.append((box.x + x * cos + y * sin, box.y + x * sin - y * cos))
    return shapely.Polygon(corners)
