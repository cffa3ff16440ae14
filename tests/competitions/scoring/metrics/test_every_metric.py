"""Every public metric through the same families of input, against an independent reference (see `tester`)."""

from __future__ import annotations

import importlib
import inspect
import math
import pkgutil

import numpy as np
import pytest
from scipy import stats
from sklearn import metrics as sk

from competitions.scoring import metrics
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
    rle_masks,
    text,
    volumes,
    weighted_roc,
)
from tests.competitions.scoring.metrics import inputs, references
from tests.competitions.scoring.metrics.references import painted
from tests.competitions.scoring.metrics.tester import (
    FAMILIES,
    NO_CLASSES,
    NO_NUMBERS,
    NO_ORDER,
    NO_ROWS,
    Family,
    Gives,
    MetricCase,
    NotApplicable,
    Outcomes,
    Raises,
)

NAN = math.nan

# Public functions that are no metrics, and where they are tested.
HELPERS = {
    "boxes3d.joint_groups": "test_many_rows",
    "correlation.spearmans": "test_correlation",
    "items.count_distinct": "test_many_rows",
    "items.distinct": "test_many_rows",
    "items.factorized": "test_many_rows",
    "items.joint_keys": "test_many_rows",
    "items.keys_of_known": "test_many_rows",
    "items.split_items": "test_many_rows",
    "pairing.first_come": "test_many_rows",
    "pairing.pairs_of_equal": "test_many_rows",
    "ranks.average_ranks": "test_ranks",
    "ranks.average_ranks_of_rows": "test_ranks",
    "rectangles.shared_areas": "test_boxes3d",
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


NOT_FINITE, ONE_CLASS, UNDEFINED = Raises("finite"), Raises("one class|undefined"), Raises("undefined")
LABELS: Outcomes = {"ties": NO_ORDER, "empty": Gives(NAN)}
ERRORS: Outcomes = {"nan": Gives(NAN), "empty": Gives(NAN), "one class": NO_CLASSES}
PAIRS: Outcomes = {"shuffled": NO_ROWS, "ties": NO_ORDER, "nan": NO_NUMBERS}
DISTANCES: Outcomes = {"ties": NO_ORDER, "one class": NO_CLASSES}

TESTED = [
    MetricCase(
        bias.bias_auc,
        references.bias,
        inputs.with_members,
        {"nan": NOT_FINITE, "empty": ONE_CLASS, "one class": ONE_CLASS},
    ),
    MetricCase(
        boxes3d.mean_average_precision_3d,
        references.mean_average_precision_3d,
        inputs.solids,
        {"nan": NotApplicable("`problem` finds such boxes before"), "empty": Gives(0)},
    ),
    MetricCase(
        boxes3d.box_ious,
        references.sampled_iou,
        inputs.solid_pair,
        {
            "shuffled": NO_ROWS,
            "ties": NO_ORDER,
            "nan": NotApplicable("`problem` finds such boxes before"),
            "empty": Gives(np.zeros((0, 1))),
            "one class": NO_CLASSES,
        },
        tolerance=0.02,
    ),
    MetricCase(classification.accuracy, references.share_of_equals, inputs.labels, LABELS),
    MetricCase(
        classification.f1_macro, lambda t, p: sk.f1_score(t, references.last(p), average="macro"), inputs.labels, LABELS
    ),
    MetricCase(
        classification.matthews_corrcoef,
        lambda t, p: sk.matthews_corrcoef(t, references.last(p)),
        inputs.labels,
        {**LABELS, "empty": Gives(0)},
    ),
    MetricCase(
        classification.quadratic_weighted_kappa,
        lambda t, p: sk.cohen_kappa_score(t, references.last(p), weights="quadratic"),
        inputs.labels,
        LABELS,
    ),
    MetricCase(
        classification.f1_micro_sets,
        references.micro_f1,
        inputs.label_sets,
        {"ties": NO_ORDER, "nan": NO_NUMBERS, "empty": Gives(0)},
    ),
    MetricCase(
        classification.f1_mean_sets,
        references.mean_f1,
        inputs.label_sets,
        {"ties": NO_ORDER, "nan": NO_NUMBERS, "empty": Gives(0)},
    ),
    MetricCase(
        classification.f_beta,
        lambda tp, fp, fn: 2 * tp / (2 * tp + fp + fn),
        inputs.counts,
        {"shuffled": NO_ROWS, "ties": NO_ORDER, "empty": Gives(0)},
    ),
    MetricCase(coco.coco_average_precision, references.coco, inputs.objects, {}, shuffle=inputs.shuffle_objects),
    MetricCase(
        detection.box_iou,
        references.area_of_overlap,
        inputs.box_pair,
        {"shuffled": NO_ROWS, "ties": NO_ORDER, "nan": Gives(0), "empty": Gives(0), "one class": NO_CLASSES},
    ),
    MetricCase(detection.mean_average_precision, references.pooled_detections, inputs.detections, {"nan": NOT_FINITE}),
    MetricCase(detection.voc_mean_average_precision, references.voc_detections, inputs.detections, {"nan": NOT_FINITE}),
    MetricCase(
        detection.located_counts,
        references.located,
        inputs.characters,
        {"shuffled": NotApplicable("the order of boxes and points decides"), "ties": NO_ORDER},
    ),
    MetricCase(geo.haversine, references.great_circle, inputs.places, DISTANCES, elementwise=True, tolerance=1e-3),
    MetricCase(
        geo.angular_distance,
        references.between_directions,
        inputs.directions,
        DISTANCES,
        elementwise=True,
        tolerance=1e-7,
    ),
    MetricCase(rle_masks.overlap, lambda a, b: len(painted(a) & painted(b)), inputs.rle_pair, PAIRS),
    MetricCase(
        rle_masks.dice,
        lambda a, b: 2 * len(painted(a) & painted(b)) / (len(painted(a)) + len(painted(b))),
        inputs.rle_pair,
        {**PAIRS, "empty": Gives(1)},
    ),
    MetricCase(
        rle_masks.iou,
        lambda a, b: len(painted(a) & painted(b)) / len(painted(a) | painted(b)),
        inputs.rle_pair,
        {**PAIRS, "empty": Gives(1)},
    ),
    MetricCase(probability.log_loss_terms, references.cross_entropy, inputs.likely, {}, elementwise=True),
    MetricCase(probability.log_loss, lambda t, p: np.mean(references.cross_entropy(t, p)), inputs.likely, {}),
    MetricCase(probability.log_loss, sk.log_loss, inputs.likely_classes, {"nan": Gives(NAN), "empty": Gives(NAN)}),
    MetricCase(probability.kl_divergence, references.divergence, inputs.votes, {"empty": Gives(NAN)}),
    MetricCase(probability.probabilistic_f1, references.soft_f1, inputs.likely, {"nan": Gives(0), "empty": Gives(0)}),
    MetricCase(
        ranking.roc_auc,
        sk.roc_auc_score,
        inputs.scores,
        {"nan": NOT_FINITE, "empty": ONE_CLASS, "one class": ONE_CLASS},
    ),
    MetricCase(
        ranking.mean_columnwise_roc_auc,
        sk.roc_auc_score,
        inputs.score_matrix,
        {"nan": NOT_FINITE, "empty": ONE_CLASS, "one class": ONE_CLASS},
    ),
    MetricCase(
        weighted_roc.weighted_roc_auc,
        references.weighted_area,
        inputs.scores,
        {"nan": Raises("NaN"), "empty": UNDEFINED},
    ),
    MetricCase(
        ranking.power_mean, stats.pmean, inputs.values, {"empty": UNDEFINED}, shuffle=inputs.shuffle_all_but_the_last
    ),
    MetricCase(
        ranking.label_ranking_average_precision,
        references.lwlrap,
        inputs.score_matrix,
        {"nan": Gives(NAN), "empty": UNDEFINED},
    ),
    MetricCase(
        ranking.average_precision,
        sk.average_precision_score,
        inputs.scores,
        {"nan": NOT_FINITE, "empty": ONE_CLASS, "one class": ONE_CLASS},
    ),
    MetricCase(
        ranking.mean_average_precision_at_k,
        references.average_precision_at_k,
        inputs.lists,
        {"ties": NO_ORDER, "nan": NO_NUMBERS, "empty": Gives(NAN)},
        shuffle=inputs.shuffle_all_but_the_last,
    ),
    MetricCase(
        ranking.kendall_tau_orders,
        references.kendall,
        inputs.orders,
        {"ties": NO_ORDER, "nan": NO_NUMBERS, "empty": UNDEFINED, "one class": NO_CLASSES},
    ),
    MetricCase(regression.rmse, sk.root_mean_squared_error, inputs.numbers, ERRORS),
    MetricCase(regression.mean_columnwise_rmse, sk.root_mean_squared_error, inputs.number_matrix, ERRORS),
    MetricCase(regression.rmsle, sk.root_mean_squared_log_error, inputs.numbers, ERRORS),
    MetricCase(regression.mae, sk.mean_absolute_error, inputs.numbers, ERRORS),
    MetricCase(regression.group_mean_log_mae, references.log_mae, inputs.grouped, ERRORS),
    MetricCase(
        regression.laplace_log_likelihood,
        references.laplace,
        inputs.confident,
        {"nan": Gives(NAN), "empty": Gives(NAN)},
    ),
    MetricCase(
        correlation.pearson,
        lambda t, p: stats.pearsonr(t, p)[0],
        inputs.numbers,
        {"nan": Gives(NAN), "empty": Gives(NAN), "one class": Gives(NAN)},
    ),
    MetricCase(
        correlation.spearman,
        lambda t, p: stats.spearmanr(t, p)[0],
        inputs.numbers,
        {"empty": Gives(NAN), "one class": Gives(NAN)},
    ),
    MetricCase(
        text.levenshtein,
        lambda t, p: list(map(references.edit_distance, t, p)),
        inputs.sentences,
        {"ties": NO_ORDER, "nan": NO_NUMBERS},
        elementwise=True,
    ),
    MetricCase(
        text.word_jaccard,
        lambda t, p: list(map(references.jaccard, t, p)),
        inputs.sentences,
        {"ties": NO_ORDER, "nan": NO_NUMBERS},
        elementwise=True,
    ),
    MetricCase(volumes.scaled_hausdorff, references.hausdorff, inputs.scans, {**PAIRS, "empty": Gives(NAN)}),
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
