"""Case f: the slow metrics at the sizes of their competitions, compared with plain loops; scores must be equal."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from benchmarks import literal
from benchmarks.measure import Case, DifferentResult, Sample, compare
from competitions.scoring.metrics.boxes3d import Box3D, mean_average_precision_3d
from competitions.scoring.metrics.coco import coco_average_precision
from competitions.scoring.metrics.rle_masks import dice, encode_rle, parse_all
from competitions.scoring.metrics.text import levenshtein
from competitions.scoring.metrics.volumes import scaled_hausdorff

Pair = tuple[str, Callable[[], Any], Callable[[], Any]]


def case(full: bool) -> tuple[Case, list[str]]:
    """The result of the case, with the lowest ratio of all metrics, and a line for each metric."""
    lines, worst = [], []
    peak = cpu = seconds = baseline_cpu = baseline_seconds = 0.0
    for name, ours, baseline in _metrics(2 if full else 1):
        sample, reference = compare(ours, baseline, 2)
        if not np.allclose(sample.value, reference.value, rtol=1e-9, atol=1e-12):
            raise DifferentResult(f"{name}: {sample.value} and {reference.value}")
        worst.append(reference.seconds / sample.seconds)
        lines.append(
            f"      {name}: {sample.seconds * 1e3:.0f} ms, baseline {reference.seconds * 1e3:.0f} ms, "
            f"ratio {worst[-1]:.1f}"
        )
        peak = max(peak, sample.peak_mb)
        seconds, cpu = seconds + sample.seconds, cpu + sample.cpu
        baseline_seconds, baseline_cpu = baseline_seconds + reference.seconds, baseline_cpu + reference.cpu
    result = Case(
        "f", "five slow metrics (the ratio is the lowest of the five)", min(worst), 10,
        Sample(seconds, cpu, peak), Sample(baseline_seconds, baseline_cpu, 0.0),
    )  # fmt: skip
    return result, lines


def _metrics(scale: int) -> Iterator[Pair]:
    truth, predicted = _boxes3d(10 * scale)
    yield (
        f"3D boxes, {sum(map(len, predicted)):,} predictions",
        lambda: mean_average_precision_3d(truth, predicted),
        lambda: literal.boxes3d(truth, predicted),
    )
    objects, detections = _boxes(3_000 * scale, 14)
    areas = detections[2][:, 2] * detections[2][:, 3]
    yield (
        f"COCO boxes, {len(detections[0]):,} detections",
        lambda: coco_average_precision(objects, detections, areas),
        lambda: literal.coco(_lists(objects), _lists(detections)),
    )
    pixels, masks, guesses = _masks(3 * scale)
    yield (
        f"run-length masks, {len(masks)} images of {pixels / 1e6:.0f} million pixels",
        lambda: [dice(*pair) for pair in zip(parse_all(masks, pixels), parse_all(guesses, pixels), strict=True)],
        lambda: literal.dice_of_masks(masks, guesses, pixels),
    )
    a, b = _volumes()
    yield (
        f"Hausdorff, {int(a.sum()):,} voxels in each volume",
        lambda: scaled_hausdorff(a, b),
        lambda: literal.hausdorff(a, b),
    )
    texts, other_texts = _texts(100 * scale)
    yield (
        f"Levenshtein, {len(texts)} texts of some 150 characters",
        lambda: levenshtein(texts, other_texts),
        lambda: literal.levenshtein(texts, other_texts),
    )


def _boxes3d(samples: int) -> tuple[list[list[Box3D]], list[list[Box3D]]]:
    generator = random.Random(0)
    truth, predicted = [], []
    for _ in range(samples):
        boxes = [
            Box3D(
                generator.choice(["car", "car", "car", "truck", "pedestrian"]), 1.0, generator.uniform(-60, 60),
                generator.uniform(-60, 60), generator.uniform(-1, 1), 2.0, 4.5, 1.6, generator.uniform(-3, 3),
            )
            for _ in range(40)
        ]  # fmt: skip
        guesses = [
            box._replace(
                confidence=generator.random(), x=box.x + generator.gauss(0, 0.2), yaw=box.yaw + generator.gauss(0, 0.05)
            )
            for box in [*boxes, *boxes[:20]]
        ]
        truth.append(boxes)
        predicted.append(guesses)
    return truth, predicted


def _boxes(images: int, labels: int) -> tuple[tuple[Any, Any, Any], tuple[Any, Any, Any, Any]]:
    generator = np.random.default_rng(0)
    pairs = generator.choice(images * labels, 2 * images, replace=False)
    boxes = np.column_stack([generator.uniform(0, 500, (len(pairs), 2)), generator.uniform(20, 200, (len(pairs), 2))])
    which = generator.integers(0, len(pairs), 12 * images)
    moved = boxes[which] + generator.normal(0, 12, (len(which), 4))
    moved[:, 2:] = np.maximum(moved[:, 2:], 1)
    confidence = generator.permutation(len(which)) / len(which)
    return (pairs // labels, pairs % labels, boxes), (pairs[which] // labels, pairs[which] % labels, moved, confidence)


def _lists(columns: tuple[Any, ...]) -> Any:
    return tuple(column.tolist() for column in columns)


def _masks(count: int) -> tuple[int, list[str], list[str]]:
    """Slides like those of HuBMAP: hundreds of glomeruli, each a disk of about a hundred rows."""
    generator = np.random.default_rng(0)
    side = 12_000
    masks: list[str] = []
    guesses: list[str] = []
    for _ in range(count):
        for target, shift in ((masks, 0), (guesses, 9)):
            mask = np.zeros((side, side), dtype=np.uint8)
            centres = np.random.default_rng(len(masks)).integers(200, side - 200, (60, 2))
            for row, column in centres + shift:
                radius = 60 + int(generator.integers(0, 9))
                y, x = np.ogrid[-radius:radius, -radius:radius]
                mask[row - radius : row + radius, column - radius : column + radius] |= (x * x + y * y) < radius**2
            target.append(encode_rle(mask.ravel()))
    return side * side, masks, guesses


def _volumes() -> tuple[Any, Any]:
    """Two ball-shaped organs, one slightly shifted."""
    z, y, x = np.ogrid[:40, :120, :120]
    a = (z - 20) ** 2 + (y - 60) ** 2 / 4 + (x - 60) ** 2 / 4 < 12**2
    return a, np.roll(a, (1, 3, 2), axis=(0, 1, 2))


def _texts(count: int) -> tuple[list[str], list[str]]:
    generator = random.Random(0)
    texts = ["InChI=1S/" + "".join(generator.choices("CHNO0123456789/-(),", k=150)) for _ in range(count)]
    other_texts = ["".join(c for c in text if generator.random() > 0.1) for text in texts]
    return texts, other_texts
