"""Every public metric through the same families of input, against an independent reference (see `tester`)."""

from __future__ import annotations

import importlib
import inspect
import math
import pkgutil
from typing import Any

import numpy as np
import pytest
from scipy import stats
from scipy.spatial.distance import directed_hausdorff
from scipy.special import rel_entr
from sklearn import metrics as sk

from competitions.scoring import metrics
from competitions.scoring.metrics import (
    bias,
    boxes3d,
    classification,
    coco,
    detection,
    geo,
    probability,
    ranking,
    regression,
    rle_masks,
    text,
    volumes,
)
from competitions.scoring.metrics.boxes3d import Box3D
from competitions.scoring.metrics.detection import Detection
from tests.competitions.scoring.metrics import references
from tests.competitions.scoring.metrics.tester import (
    FAMILIES,
    NO_CLASSES,
    NO_NUMBERS,
    NO_ORDER,
    NO_ROWS,
    Arguments,
    Family,
    Gives,
    MetricCase,
    NotApplicable,
    Outcomes,
    Raises,
    shuffle_rows,
)

Generator = np.random.Generator
NAN = math.nan

# Public functions that are no metrics, and where they are tested.
HELPERS = {
    "boxes3d.joint_groups": "test_many_rows",
    "items.count_distinct": "test_many_rows",
    "items.joint_keys": "test_many_rows",
    "items.split_items": "test_many_rows",
    "pairing.first_come": "test_many_rows",
    "pairing.pairs_of_equal": "test_many_rows",
    "rle_columns.dices": "test_rle_columns",
    "rle_columns.ious": "test_rle_columns",
    "rle_columns.overlaps": "test_rle_columns",
    "rle_columns.parse_column": "test_rle_columns",
    "volumes.hausdorff_of_voxels": "test_many_rows",
    "boxes3d.problem": "test_odd_boxes",
    "rle_masks.encode_rle": "test_rle_masks",
    "rle_masks.parse_all": "test_rle_masks",
    "rle_masks.parse_rle": "test_rle_masks",
    "rle_masks.to_mask": "test_rle_masks",
}


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


def painted(mask: rle_masks.RleMask) -> set[int]:
    return {pixel for start, stop in zip(*mask, strict=True) for pixel in range(start, stop)}


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


def sampled_iou(a: list[Box3D], b: list[Box3D]) -> Any:
    points = np.random.default_rng(0).uniform(-4, 4, (200_000, 3))
    p, q = references.inside(a[0], points), references.inside(b[0], points)
    return [[(p & q).sum() / (p | q).sum()]]


def scans(family: Family, rng: Generator) -> Arguments:
    if family == "empty":
        return np.zeros((3, 7, 9), bool), np.zeros((3, 7, 9), bool)
    if family == "one class":
        return np.ones((3, 7, 9), bool), np.ones((3, 7, 9), bool)
    return rng.random((3, 7, 9)) < 0.1, rng.random((3, 7, 9)) < 0.15


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
        p = min(max(p, probability.EPS), 1 - probability.EPS)
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


NOT_FINITE, ONE_CLASS, UNDEFINED = Raises("finite"), Raises("one class|undefined"), Raises("undefined")
LABELS: Outcomes = {"ties": NO_ORDER, "empty": Gives(NAN)}
ERRORS: Outcomes = {"nan": Gives(NAN), "empty": Gives(NAN), "one class": NO_CLASSES}
PAIRS: Outcomes = {"shuffled": NO_ROWS, "ties": NO_ORDER, "nan": NO_NUMBERS}
DISTANCES: Outcomes = {"ties": NO_ORDER, "one class": NO_CLASSES}

TESTED = [
    MetricCase(
        bias.bias_auc, references.bias, with_members, {"nan": NOT_FINITE, "empty": ONE_CLASS, "one class": ONE_CLASS}
    ),
    MetricCase(
        boxes3d.mean_average_precision_3d,
        references.mean_average_precision_3d,
        solids,
        {"nan": NotApplicable("`problem` finds such boxes before"), "empty": Gives(0)},
    ),
    MetricCase(
        boxes3d.box_ious,
        sampled_iou,
        solid_pair,
        {
            "shuffled": NO_ROWS,
            "ties": NO_ORDER,
            "nan": NotApplicable("`problem` finds such boxes before"),
            "empty": Gives(np.zeros((0, 1))),
            "one class": NO_CLASSES,
        },
        tolerance=0.02,
    ),
    MetricCase(classification.accuracy, share_of_equals, labels, LABELS),
    MetricCase(classification.f1_macro, lambda t, p: sk.f1_score(t, last(p), average="macro"), labels, LABELS),
    MetricCase(
        classification.matthews_corrcoef,
        lambda t, p: sk.matthews_corrcoef(t, last(p)),
        labels,
        {**LABELS, "empty": Gives(0)},
    ),
    MetricCase(
        classification.quadratic_weighted_kappa,
        lambda t, p: sk.cohen_kappa_score(t, last(p), weights="quadratic"),
        labels,
        LABELS,
    ),
    MetricCase(
        classification.f1_micro_sets, micro_f1, label_sets, {"ties": NO_ORDER, "nan": NO_NUMBERS, "empty": Gives(0)}
    ),
    MetricCase(
        classification.f1_mean_sets, mean_f1, label_sets, {"ties": NO_ORDER, "nan": NO_NUMBERS, "empty": Gives(0)}
    ),
    MetricCase(
        classification.f_beta,
        lambda tp, fp, fn: 2 * tp / (2 * tp + fp + fn),
        counts,
        {"shuffled": NO_ROWS, "ties": NO_ORDER, "empty": Gives(0)},
    ),
    MetricCase(coco.coco_average_precision, references.coco, objects, {}, shuffle=shuffle_objects),
    MetricCase(
        detection.box_iou,
        references.area_of_overlap,
        box_pair,
        {"shuffled": NO_ROWS, "ties": NO_ORDER, "nan": Gives(0), "empty": Gives(0), "one class": NO_CLASSES},
    ),
    MetricCase(detection.mean_average_precision, references.pooled_detections, detections, {"nan": NOT_FINITE}),
    MetricCase(
        detection.located_counts,
        references.located,
        characters,
        {"shuffled": NotApplicable("the order of boxes and points decides"), "ties": NO_ORDER},
    ),
    MetricCase(geo.haversine, references.great_circle, places, DISTANCES, elementwise=True, tolerance=1e-3),
    MetricCase(
        geo.angular_distance, references.between_directions, directions, DISTANCES, elementwise=True, tolerance=1e-7
    ),
    MetricCase(rle_masks.overlap, lambda a, b: len(painted(a) & painted(b)), rle_pair, PAIRS),
    MetricCase(
        rle_masks.dice,
        lambda a, b: 2 * len(painted(a) & painted(b)) / (len(painted(a)) + len(painted(b))),
        rle_pair,
        {**PAIRS, "empty": Gives(1)},
    ),
    MetricCase(
        rle_masks.iou,
        lambda a, b: len(painted(a) & painted(b)) / len(painted(a) | painted(b)),
        rle_pair,
        {**PAIRS, "empty": Gives(1)},
    ),
    MetricCase(probability.log_loss_terms, cross_entropy, likely, {}, elementwise=True),
    MetricCase(probability.log_loss, lambda t, p: np.mean(cross_entropy(t, p)), likely, {}),
    MetricCase(probability.log_loss, sk.log_loss, likely_classes, {"nan": Gives(NAN), "empty": Gives(NAN)}),
    MetricCase(probability.kl_divergence, divergence, votes, {"empty": Gives(NAN)}),
    MetricCase(probability.probabilistic_f1, soft_f1, likely, {"nan": Gives(0), "empty": Gives(0)}),
    MetricCase(
        ranking.roc_auc,
        sk.roc_auc_score,
        scores,
        {"nan": NOT_FINITE, "empty": ONE_CLASS, "one class": ONE_CLASS},
    ),
    MetricCase(
        ranking.mean_columnwise_roc_auc,
        sk.roc_auc_score,
        score_matrix,
        {"nan": NOT_FINITE, "empty": ONE_CLASS, "one class": ONE_CLASS},
    ),
    MetricCase(ranking.weighted_roc_auc, references.weighted_area, scores, {"nan": Raises("NaN"), "empty": UNDEFINED}),
    MetricCase(ranking.power_mean, stats.pmean, values, {"empty": UNDEFINED}, shuffle=shuffle_all_but_the_last),
    MetricCase(ranking.label_ranking_average_precision, lwlrap, score_matrix, {"nan": Gives(NAN), "empty": UNDEFINED}),
    MetricCase(
        ranking.average_precision,
        sk.average_precision_score,
        scores,
        {"nan": NOT_FINITE, "empty": ONE_CLASS, "one class": ONE_CLASS},
    ),
    MetricCase(
        ranking.mean_average_precision_at_k,
        average_precision_at_k,
        lists,
        {"ties": NO_ORDER, "nan": NO_NUMBERS, "empty": Gives(NAN)},
        shuffle=shuffle_all_but_the_last,
    ),
    MetricCase(
        ranking.kendall_tau_orders,
        kendall,
        orders,
        {"ties": NO_ORDER, "nan": NO_NUMBERS, "empty": UNDEFINED, "one class": NO_CLASSES},
    ),
    MetricCase(regression.rmse, sk.root_mean_squared_error, numbers, ERRORS),
    MetricCase(regression.mean_columnwise_rmse, sk.root_mean_squared_error, number_matrix, ERRORS),
    MetricCase(regression.rmsle, sk.root_mean_squared_log_error, numbers, ERRORS),
    MetricCase(regression.mae, sk.mean_absolute_error, numbers, ERRORS),
    MetricCase(regression.group_mean_log_mae, log_mae, grouped, ERRORS),
    MetricCase(regression.laplace_log_likelihood, laplace, confident, {"nan": Gives(NAN), "empty": Gives(NAN)}),
    MetricCase(
        regression.pearson,
        lambda t, p: stats.pearsonr(t, p)[0],
        numbers,
        {"nan": Gives(NAN), "empty": Gives(NAN), "one class": Gives(NAN)},
    ),
    MetricCase(
        regression.spearman,
        lambda t, p: stats.spearmanr(t, p)[0],
        numbers,
        {"empty": Gives(NAN), "one class": Gives(NAN)},
    ),
    MetricCase(
        text.levenshtein,
        lambda t, p: list(map(references.edit_distance, t, p)),
        sentences,
        {"ties": NO_ORDER, "nan": NO_NUMBERS},
        elementwise=True,
    ),
    MetricCase(
        text.word_jaccard,
        lambda t, p: list(map(references.jaccard, t, p)),
        sentences,
        {"ties": NO_ORDER, "nan": NO_NUMBERS},
        elementwise=True,
    ),
    MetricCase(volumes.scaled_hausdorff, hausdorff, scans, {**PAIRS, "empty": Gives(NAN)}),
]


CASES = [
    pytest.param(tested, family, id=f"{tested.name}-{tested.arguments.__name__}-{family}")
    for tested in TESTED
    for family in FAMILIES
    if tested.applies(family)
]


@pytest.mark.parametrize(("tested", "family"), CASES)
def test_metric(tested: MetricCase, family: Family) -> None:
    for seed in range(3):
        tested.test(family, seed)


def test_every_public_function_is_a_tested_metric_or_a_known_helper() -> None:
    public = {
        f"{module.name}.{name}"
        for module in pkgutil.iter_modules(metrics.__path__)
        for name, value in vars(importlib.import_module(f"{metrics.__name__}.{module.name}")).items()
        if inspect.isfunction(value) and not name.startswith("_") and value.__module__.endswith(f".{module.name}")
    }
    assert public == {tested.name for tested in TESTED} | set(HELPERS)
