"""Arguments of metrics for each family of input (see `tester`): random ones, ties, NaN, no rows, one class."""

from __future__ import annotations

import math

import numpy as np

from competitions.scoring.metrics import rle_masks
from competitions.scoring.metrics.boxes3d import Box3D
from competitions.scoring.metrics.detection import Detection
from tests.competitions.scoring.metrics.tester import Arguments, Family, shuffle_rows

Generator = np.random.Generator
NAN = math.nan


def labels(family: Family, rng: Generator) -> Arguments:
    """True and predicted classes."""
    truth = rng.integers(0, 4, 60)
    predicted = np.where(rng.random(60) < 0.6, truth, rng.integers(0, 6, 60))
    match family:
        case "nan":
            return truth, np.where(np.arange(60) < 3, NAN, predicted)
        case "empty":
            return truth[:0], predicted[:0]
        case "one class":
            return np.zeros(9, int), np.zeros(9, int)
    return truth, predicted


def scores(family: Family, rng: Generator) -> Arguments:
    """True classes 0 and 1, and scores."""
    truth = np.append([0, 1], rng.integers(0, 2, 60))
    found = truth + rng.normal(0, 1, 62)
    match family:
        case "ties":
            return truth, rng.integers(0, 4, 62)
        case "nan":
            return truth, np.where(np.arange(62) == 5, NAN, found)
        case "empty":
            return truth[:0], found[:0]
        case "one class":
            return np.zeros(62, int), found
    return truth, found


def with_members(family: Family, rng: Generator) -> Arguments:
    """Scores, and which of three groups each row belongs to."""
    truth, found = scores(family, rng)
    return truth == 1, found, rng.random((len(truth), 3)) < 0.5


def score_matrix(family: Family, rng: Generator) -> Arguments:
    truth = (rng.random((50, 4)) < 0.4).astype(int)
    truth[0], truth[1] = 0, 1
    found = truth + rng.normal(0, 1, (50, 4))
    match family:
        case "ties":
            return truth, rng.integers(0, 3, (50, 4))
        case "nan":
            return truth, np.where(np.arange(200).reshape(50, 4) == 6, NAN, found)
        case "empty":
            return truth[:0], found[:0]
        case "one class":
            return np.where(np.arange(4) == 2, 0, truth), found
    return truth, found


def numbers(family: Family, rng: Generator) -> Arguments:
    """True and predicted numbers, not negative."""
    truth, predicted = rng.gamma(2, 3, (2, 60))
    match family:
        case "ties":
            return truth.round(), predicted.round()
        case "nan":
            return truth, np.where(np.arange(60) == 7, NAN, predicted)
        case "empty":
            return truth[:0], predicted[:0]
        case "one class":
            return truth, np.full(60, 4.0)
    return truth, predicted


def number_matrix(family: Family, rng: Generator) -> Arguments:
    truth, predicted = (np.column_stack(pair) for pair in zip(*(numbers(family, rng) for _ in range(3)), strict=True))
    return truth, predicted


def grouped(family: Family, rng: Generator) -> Arguments:
    truth, predicted = numbers(family, rng)
    return truth, predicted, rng.choice(["1JHC", "2JHN", "3JHH"], len(truth))


def confident(family: Family, rng: Generator) -> Arguments:
    truth, predicted = numbers(family, rng)
    return truth * 500, predicted * 500, rng.uniform(0, 300, len(truth))


def values(family: Family, rng: Generator) -> Arguments:
    """Numbers, and the power of their mean."""
    return numbers(family, rng)[1], -5


def likely(family: Family, rng: Generator) -> Arguments:
    """True classes 0 and 1, and probabilities of 1."""
    truth, found = scores(family, rng)
    return truth, 1 / (1 + np.exp(-found))


def likely_classes(family: Family, rng: Generator) -> Arguments:
    """Two matrices of distributions over classes."""
    truth, found = np.eye(4)[rng.integers(0, 4, 50)], rng.dirichlet(np.ones(4), 50)
    match family:
        case "ties":
            return truth, np.full((50, 4), 0.25)
        case "nan":
            return truth, np.where(np.arange(200).reshape(50, 4) == 6, NAN, found)
        case "empty":
            return truth[:0], found[:0]
        case "one class":
            return np.tile([0.0, 1, 0, 0], (50, 1)), found
    return truth, found


def votes(family: Family, rng: Generator) -> Arguments:
    truth, found = likely_classes(family, rng)
    return (truth + 1) / 5, found


def places(family: Family, rng: Generator) -> Arguments:
    """Latitudes and longitudes of pairs of places, in degrees."""
    found = rng.uniform(-90, 90, (4, 40)) * [[1], [2], [1], [2]]
    if family == "nan":
        found[0, 0], found[3, 1] = NAN, NAN
    return tuple(found[:, : 0 if family == "empty" else 40])


def directions(family: Family, rng: Generator) -> Arguments:
    found = rng.uniform(0, math.pi, (4, 40)) * [[2], [1], [2], [1]]
    if family == "nan":
        found[0, 0], found[3, 1] = NAN, NAN
    return tuple(found[:, : 0 if family == "empty" else 40])


def label_sets(family: Family, rng: Generator) -> Arguments:
    words = np.array(["a", "b"] if family == "one class" else ["a", "b", "c", "A", "007", "7"])
    size = 0 if family == "empty" else 30
    parts = (words[:1], words) if family == "one class" else (words, words)
    return tuple([" ".join(rng.choice(part, rng.integers(0, 4))) for _ in range(size)] for part in parts)


def sentences(family: Family, rng: Generator) -> Arguments:
    words = ["same"] if family == "one class" else ["the", "The", "cat", "é", "\U0001f600"]
    size = 0 if family == "empty" else 20
    return tuple([" ".join(rng.choice(words, rng.integers(1, 6))) for _ in range(size)] for _ in "ab")


def counts(family: Family, rng: Generator) -> Arguments:
    match family:
        case "empty":
            return 0, 0, 0
        case "one class":
            return 0, int(rng.integers(1, 9)), 0
        case "nan":
            return NAN, 1, 2
    return tuple(int(count) for count in rng.integers(1, 50, 3))


def lists(family: Family, rng: Generator) -> Arguments:
    """Sets of true items, and ranked guesses with repetitions."""
    size = 0 if family == "empty" else 30
    items = list("a" if family == "one class" else "abcdefgh")
    truth = [set(rng.choice(items, rng.integers(1, 4)).tolist()) for _ in range(size)]
    return truth, [rng.choice(items, rng.integers(0, 8)).tolist() for _ in range(size)], 5


def shuffle_all_but_the_last(arguments: Arguments, order: np.ndarray) -> Arguments:
    """The last argument is an option."""
    return *shuffle_rows(arguments[:-1], order), arguments[-1]


def orders(family: Family, rng: Generator) -> Arguments:
    if family == "empty":
        return [], []
    items = [f"cell{i}" for i in range(20)]
    return tuple([rng.permutation(items).tolist() for _ in range(5)] for _ in "ab")


def rle_pair(family: Family, rng: Generator) -> Arguments:
    a, b = rng.random((2, 300)) < [[0.3], [0.4]]
    if family == "empty":
        a, b = a & False, b & False
    if family == "one class":
        a, b = a | True, b | True
    return tuple(rle_masks.parse_rle(rle_masks.encode_rle(mask), 300) for mask in (a, b))


def box_pair(family: Family, rng: Generator) -> Arguments:
    corners = rng.integers(0, 9, (2, 2))
    boxes = np.hstack([corners, corners + rng.integers(1, 9, (2, 2))]).astype(float)
    if family == "nan":
        boxes[0, 0] = NAN
    if family == "empty":
        boxes[:, 2:] = boxes[:, :2]
    return tuple(map(tuple, boxes))


def detections(family: Family, rng: Generator) -> Arguments:
    names = ["a"] if family == "one class" else ["a", "b"]

    def image(most: int) -> list[Detection]:
        found = []
        for _ in range(rng.integers(0, most)):
            corner = rng.integers(0, 6, 2)
            confidence = float(rng.integers(1, 4)) if family == "ties" else rng.random()
            (x, y), (x2, y2) = corner, corner + rng.integers(3, 7, 2)
            box = float(x), float(y), float(x2), float(y2)
            found.append(Detection(str(rng.choice(names)), NAN if family == "nan" else confidence, box))
        return found

    truth = [[Detection(name, 1.0, (0, 0, 5, 5)) for name in names], *(image(3) for _ in range(11))]
    return truth, [[] if family == "empty" else image(6) for _ in truth]


def characters(family: Family, rng: Generator) -> Arguments:
    names = "a" if family == "one class" else "ab"
    size, found = (0, 0) if family == "empty" else rng.integers(1, 9, 2)
    boxes = rng.integers([0, 0, 2, 2], [10, 10, 12, 12], (size, 4))
    points = rng.integers(0, 12, (found, 2)).astype(float)
    if family == "nan":
        points[0] = NAN
    return rng.choice(list(names), size).tolist(), boxes, rng.choice(list(names), found).tolist(), points


def objects(family: Family, rng: Generator) -> Arguments:
    """COCO: at most one object of a label in each of 8 images."""
    cells = rng.permutation(8 if family == "one class" else 24)[:8]
    truth = cells % 8, cells // 8, rng.integers([0, 0, 3, 3], [5, 5, 8, 8], (len(cells), 4))
    m = 0 if family == "empty" else 60
    confidence = rng.integers(0, 4, m) if family == "ties" else rng.permutation(m) / 60
    boxes = rng.integers([0, 0, 3, 3], [5, 5, 8, 8], (m, 4)).astype(float)
    predicted = rng.integers(0, 8, m), rng.integers(0, 1 if family == "one class" else 4, m), boxes, confidence
    return truth, predicted, boxes[:, 2] * boxes[:, 3]


def shuffle_objects(arguments: Arguments, order: np.ndarray) -> Arguments:
    truth, predicted, areas = arguments
    order = np.random.default_rng(1).permutation(len(areas))
    return (
        tuple(column[::-1] for column in truth),
        tuple(column[order] for column in predicted),
        areas[order],
    )


def solids(family: Family, rng: Generator) -> Arguments:
    names = ["car"] if family == "one class" else ["car", "bus"]

    def boxes(count: int) -> list[Box3D]:
        sizes = rng.uniform([0, 0, 0, 2, 3, 1, -0.2], [4, 1, 0.3, 2.5, 4, 1.5, 0.2], (count, 7))
        confidences = rng.integers(0, 3, count) if family == "ties" else rng.random(count)
        return [Box3D(str(rng.choice(names)), float(c), *row) for c, row in zip(confidences, sizes, strict=True)]

    truth = [boxes(int(rng.integers(1, 4))) for _ in range(5)]
    return truth, [[] if family == "empty" else boxes(int(rng.integers(0, 6))) for _ in truth]


def solid_pair(family: Family, rng: Generator) -> Arguments:
    if family == "empty":
        return [], [Box3D("car", 1, 0, 0, 0, 1, 1, 1, 0)]
    low, high = np.repeat([[-1, 1, -4], [1, 4, 4]], [3, 3, 1], axis=1)
    return tuple([Box3D("car", 1, *rng.uniform(low, high))] for _ in "ab")


def scans(family: Family, rng: Generator) -> Arguments:
    if family == "empty":
        return np.zeros((3, 7, 9), bool), np.zeros((3, 7, 9), bool)
    if family == "one class":
        return np.ones((3, 7, 9), bool), np.ones((3, 7, 9), bool)
    return rng.random((3, 7, 9)) < 0.1, rng.random((3, 7, 9)) < 0.15
