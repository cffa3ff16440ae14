"""How reading and metrics grow: CPU time at 4 n as a multiple of that at n, which must stay below 5.

Every metric of `competitions.scoring.metrics` whose input grows with the data, and reading, by rows and by columns, are
measured in one process, in turns at both sizes, of which the quickest run counts. `python -m benchmarks.scaling` prints
one line for each, with the time for a million rows, and exits with 1 if one of them grows faster.
"""

from __future__ import annotations

import argparse
import math
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from competitions.scoring.metrics import (
    bias,
    boxes3d,
    classification,
    coco,
    correlation,
    detection,
    geo,
    probability,
    ranking,
    regression,
    rle_columns,
    text,
    volumes,
    weighted_roc,
)
from competitions.scoring.metrics.items import split_items
from competitions.scoring.reading import Reads, read_submission

MOST = 5.0  # times the CPU time for four times the rows: sorting grows a little faster than linearly
_FACTOR = 4
_MIN_RUNS, _MAX_RUNS = 3, 20  # other processes use the caches of the machine too, so a few runs are not reliable
Work = Callable[[], Any]


def growth(make: Callable[[np.random.Generator, int], Work], rows: int) -> tuple[float, float]:
    """CPU seconds at 4 n over those at n, and microseconds a row at 4 n."""
    works = [make(np.random.default_rng(0), count) for count in (rows, _FACTOR * rows)]
    quickest = [math.inf, math.inf]
    for run in range(_MAX_RUNS):
        quickest = [min(earlier, _seconds(work)) for earlier, work in zip(quickest, works, strict=True)]
        if run >= _MIN_RUNS and quickest[1] <= MOST * quickest[0]:
            break
    small_seconds, large_seconds = quickest
    return large_seconds / small_seconds, large_seconds / (_FACTOR * rows) * 1e6


def _seconds(work: Work) -> float:
    start = time.process_time()
    work()
    return time.process_time() - start


def _numbers(metric: Callable[[Any, Any], Any]) -> Callable[[np.random.Generator, int], Work]:
    def make(rng: np.random.Generator, rows: int) -> Work:
        truth, predicted = rng.random((2, rows))
        return lambda: metric(truth, predicted)

    return make


def _classes(metric: Callable[[Any, Any], Any]) -> Callable[[np.random.Generator, int], Work]:
    def make(rng: np.random.Generator, rows: int) -> Work:
        truth, predicted = rng.integers(0, 2, rows), rng.random(rows)
        return lambda: metric(truth, predicted)

    return make


def _labels(metric: Callable[[Any, Any], Any]) -> Callable[[np.random.Generator, int], Work]:
    def make(rng: np.random.Generator, rows: int) -> Work:
        truth, predicted = rng.integers(0, 20, (2, rows))
        return lambda: metric(truth, predicted)

    return make


def _words(metric: Callable[[Any, Any], Any], as_arrow: bool = True) -> Callable[[np.random.Generator, int], Work]:
    def make(rng: np.random.Generator, rows: int) -> Work:
        words = np.array([f"w{number}" for number in range(1000)], dtype=object)
        sides = [[" ".join(row) for row in words[rng.integers(0, 1000, (rows, 6))]] for _ in range(2)]
        truth, predicted = (pa.array(side) for side in sides) if as_arrow else sides
        return lambda: metric(truth, predicted)

    return make


def _ranked(rng: np.random.Generator, rows: int) -> Work:
    truth, guesses = (pa.array([" ".join(map(str, row)) for row in rng.integers(0, 500, (rows, 8))]) for _ in range(2))
    return lambda: ranking.mean_average_precision_at_k(split_items(truth, " "), split_items(guesses, " "), 5)


def _orders(rng: np.random.Generator, rows: int) -> Work:
    truth, guesses = ([rng.permutation(40).astype(str).tolist() for _ in range(rows)] for _ in range(2))
    return lambda: ranking.kendall_tau_orders(truth, guesses)


def _tokens(rng: np.random.Generator, rows: int) -> Work:
    truth, guesses = (rng.integers(0, 20, (rows, 15)).tolist() for _ in range(2))
    return lambda: text.levenshtein(truth, guesses)


def _masks(metric: Callable[[Any, Any], Any]) -> Callable[[np.random.Generator, int], Work]:
    def make(rng: np.random.Generator, rows: int) -> Work:
        sides = []
        for _ in range(2):
            starts = np.cumsum(rng.integers(50, 200, (rows, 20)), axis=1)
            sides.append([" ".join(f"{start} 30" for start in row) for row in starts.tolist()])
        truth, guesses = sides
        return lambda: metric(rle_columns.parse_column(truth, 5000), rle_columns.parse_column(guesses, 5000))

    return make


def _boxes(rng: np.random.Generator, rows: int) -> Any:
    labels = np.array(["car", "bus", "dog"], dtype=object)[rng.integers(0, 3, rows)]
    corners = rng.uniform(0, 400, (rows, 2))
    return (
        np.arange(rows) // 5,
        labels,
        rng.random(rows),
        np.hstack([corners, corners + rng.uniform(50, 300, (rows, 2))]),
    )


def _detections(metric: Callable[[Any, Any], Any]) -> Callable[[np.random.Generator, int], Work]:
    def make(rng: np.random.Generator, rows: int) -> Work:
        sides = []
        for _ in range(2):
            images, labels, confidences, boxes = _boxes(rng, rows)
            sides.append(detection.Detections(images, labels, confidences, boxes, rows // 5 + 1))
        truth, guesses = sides
        return lambda: metric(truth, guesses)

    return make


def _coco(rng: np.random.Generator, rows: int) -> Work:
    images, _, _, boxes = _boxes(rng, rows)
    _, _, confidence, predicted_boxes = _boxes(rng, rows)
    truth, guesses = np.arange(rows) % 5, rng.integers(0, 5, rows)  # an object of a label in an image
    areas = np.prod(predicted_boxes[:, 2:], axis=1)
    return lambda: coco.coco_average_precision(
        (images, truth, boxes), (images, guesses, predicted_boxes, confidence), areas
    )


def _points(rng: np.random.Generator, rows: int) -> Work:
    pages = np.arange(rows) // 190
    labels = [f"U+{number}" for number in rng.integers(0, 100, rows)]
    boxes = np.hstack([rng.uniform(0, 2000, (rows, 2)), np.full((rows, 2), 60.0)])
    points = boxes[:, :2] + rng.uniform(0, 80, (rows, 2))
    return lambda: detection.located_counts(labels, boxes, labels, points, (pages, pages))


def _boxes3d(rng: np.random.Generator, rows: int) -> Work:
    samples, labels, confidences, _ = _boxes(rng, rows)
    numbers = rng.uniform([-60, -60, -1, 1, 3, 1, -3], [60, 60, 1, 3, 6, 2, 3], (rows, 7))
    moved = numbers + rng.normal(0, 0.1, numbers.shape)
    truth, guesses = (
        boxes3d.Boxes3D(samples, labels, confidences, numbers_of_side, rows // 5 + 1)
        for numbers_of_side in (numbers, moved)
    )
    return lambda: boxes3d.mean_average_precision_3d(truth, guesses)


def _volume(rng: np.random.Generator, rows: int) -> Work:
    slices = max(rows // 1000, 2)  # a longer volume, not a larger organ in each slice
    y, x = np.ogrid[:64, :64]
    disk = np.repeat(((y - 32) ** 2 + (x - 32) ** 2 < 20**2)[None], slices, axis=0)
    shifted = np.roll(disk, 2, axis=1)
    return lambda: volumes.scaled_hausdorff(disk, shifted)


def _weighted(rng: np.random.Generator, rows: int) -> Work:
    truth, scores = rng.integers(0, 2, rows), rng.random(rows)
    subgroups = rng.random((rows, 9)) < 0.2
    return lambda: bias.bias_auc(truth, scores, subgroups)


def _several(metric: Callable[[Any, Any], Any]) -> Callable[[np.random.Generator, int], Work]:
    def make(rng: np.random.Generator, rows: int) -> Work:
        truth, predicted = np.eye(6)[rng.integers(0, 6, rows)], rng.dirichlet(np.ones(6), rows)
        return lambda: metric(truth, predicted)

    return make


def _grouped(rng: np.random.Generator, rows: int) -> Work:
    truth, predicted = rng.random((2, rows))
    groups = rng.integers(0, 8, rows)
    return lambda: regression.group_mean_log_mae(truth, predicted, groups)


def _confident(rng: np.random.Generator, rows: int) -> Work:
    truth, predicted, confidence = rng.uniform(50, 5000, (3, rows))
    return lambda: regression.laplace_log_likelihood(truth, predicted, confidence)


def _values(metric: Callable[[Any, float], Any]) -> Callable[[np.random.Generator, int], Work]:
    def make(rng: np.random.Generator, rows: int) -> Work:
        values = rng.uniform(0.1, 1, rows)
        return lambda: metric(values, -5.0)

    return make


def _places(metric: Callable[..., Any]) -> Callable[[np.random.Generator, int], Work]:
    def make(rng: np.random.Generator, rows: int) -> Work:
        coordinates = rng.uniform(-80, 80, (4, rows))
        return lambda: metric(*coordinates)

    return make


def _file(rows: int, columns: int, cell: Callable[[int], str]) -> Work:
    """Read a submission: ids and other columns, with the cell of each row in all of these."""
    file = tempfile.NamedTemporaryFile(suffix=".csv")  # noqa: SIM115 (it is there as long as the work)
    file.write(",".join(["id", *(f"c{number}" for number in range(columns))]).encode() + b"\n")
    file.writelines(",".join([f"r{row}", *[cell(row)] * columns]).encode() + b"\n" for row in range(rows))
    file.flush()
    return lambda: read_submission(Path(file.name), reads=Reads(texts="arrow"))


READING: dict[str, tuple[Callable[[np.random.Generator, int], Work], int]] = {
    "reading: rows": (lambda _, rows: _file(rows, 3, lambda row: f"{row / 7:.6f}"), 100_000),
    "reading: columns of numbers": (lambda _, columns: _file(500, columns, lambda row: f"{row / 7:.8f}"), 2_000),
    "reading: columns of words": (lambda _, columns: _file(500, columns, lambda row: f"of row {row}"), 500),
    "reading: columns of few rows": (lambda _, columns: _file(2, columns, lambda _: "0.5"), 10_000),
}
"""Submissions may have any number of rows, and of columns, for which a million columns stand for a million rows."""

METRICS: dict[str, tuple[Callable[[np.random.Generator, int], Work], int]] = {
    "bias.bias_auc": (_weighted, 50_000),
    "boxes3d.mean_average_precision_3d": (_boxes3d, 10_000),
    "classification.accuracy": (_labels(classification.accuracy), 1_000_000),
    "classification.accuracy of text": (_words(classification.accuracy), 50_000),
    "classification.f1_macro": (_labels(classification.f1_macro), 1_000_000),
    "classification.f1_mean_sets": (_words(classification.f1_mean_sets), 20_000),
    "classification.f1_micro_sets": (_words(classification.f1_micro_sets), 20_000),
    "classification.matthews_corrcoef": (_labels(classification.matthews_corrcoef), 1_000_000),
    "classification.quadratic_weighted_kappa": (_labels(classification.quadratic_weighted_kappa), 1_000_000),
    "coco.coco_average_precision": (_coco, 5_000),
    "correlation.pearson": (_numbers(correlation.pearson), 2_000_000),
    "correlation.spearman": (_numbers(correlation.spearman), 10_000),
    "detection.located_counts": (_points, 20_000),
    "detection.mean_average_precision": (_detections(detection.mean_average_precision), 20_000),
    "detection.voc_mean_average_precision": (_detections(detection.voc_mean_average_precision), 5_000),
    "geo.angular_distance": (_places(geo.angular_distance), 100_000),
    "geo.haversine": (_places(geo.haversine), 100_000),
    "probability.kl_divergence": (_several(probability.kl_divergence), 50_000),
    "probability.log_loss": (_several(probability.log_loss), 50_000),
    "probability.log_loss_terms": (_classes(probability.log_loss_terms), 300_000),
    "probability.probabilistic_f1": (_classes(probability.probabilistic_f1), 300_000),
    "ranking.average_precision": (_classes(ranking.average_precision), 10_000),
    "ranking.kendall_tau_orders": (_orders, 2_000),
    "ranking.label_ranking_average_precision": (_several(ranking.label_ranking_average_precision), 20_000),
    "ranking.mean_average_precision_at_k": (_ranked, 20_000),
    "ranking.mean_columnwise_roc_auc": (_several(ranking.mean_columnwise_roc_auc), 20_000),
    "ranking.power_mean": (_values(ranking.power_mean), 50_000),
    "ranking.roc_auc": (_classes(ranking.roc_auc), 10_000),
    "regression.group_mean_log_mae": (_grouped, 100_000),
    "regression.laplace_log_likelihood": (_confident, 300_000),
    "regression.mae": (_numbers(regression.mae), 500_000),
    "regression.mean_columnwise_rmse": (_several(regression.mean_columnwise_rmse), 100_000),
    "regression.rmse": (_numbers(regression.rmse), 500_000),
    "regression.rmsle": (_numbers(regression.rmsle), 300_000),
    "rle_columns.dices": (_masks(rle_columns.dices), 2_000),
    "rle_columns.ious": (_masks(rle_columns.ious), 2_000),
    "text.levenshtein": (_words(text.levenshtein), 20_000),
    "text.levenshtein of tokens": (_tokens, 20_000),
    "text.word_jaccard": (_words(text.word_jaccard, as_arrow=False), 20_000),
    "volumes.scaled_hausdorff": (_volume, 20_000),
    "weighted_roc.weighted_roc_auc": (_classes(weighted_roc.weighted_roc_auc), 100_000),
}
"""What is measured for each metric, and the smaller number of rows.

Arrays have less than 32 MB where only memory limits a metric: glibc returns larger ones to the system, which clears the
pages anew for each run. Metrics that sort are measured with rows that fit the processor's cache: sorting many more,
and the ranks, which are written all over memory, take more than 5 times as long for four times the rows.
"""

CONSTANT = {
    "boxes3d.box_ious": "a matrix of pairs, which the metric of boxes does not use",
    "classification.f_beta": "three counts",
    "detection.box_iou": "a pair of boxes",
    "rle_masks.dice": "a pair of masks",
    "rle_masks.iou": "a pair of masks",
    "rle_masks.overlap": "a pair of masks",
}
"""Metrics whose input does not grow with the data, and what it is."""


MEASURED = {**READING, **METRICS}


def main() -> int:
    """Measure reading and the metrics; returns 1 if one of them grows too fast."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.scaling", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help=", ".join(MEASURED))
    parser.add_argument("--rows", type=int, metavar="N", help="the smaller number of rows of metrics")
    arguments = parser.parse_args()
    chosen = arguments.names or list(MEASURED)
    if unknown := sorted(set(chosen) - set(MEASURED)):
        parser.error(f"unknown name {', '.join(unknown)}")
    slow = 0
    for name in chosen:
        make, rows = MEASURED[name]
        if arguments.rows and name in METRICS:  # as many columns would be gigabytes
            rows = arguments.rows
        ratio, seconds = growth(make, rows)
        slow += ratio > MOST
        print(f"{name:40} x {ratio:4.1f} for {_FACTOR} n  {seconds:8.2f} s for a million rows", flush=True)
    return 1 if slow else 0


if __name__ == "__main__":
    sys.exit(main())
