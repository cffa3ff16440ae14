"""What evaluation pages call metrics, and the functions that compute them."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

from competitions.facts import Direction
from competitions.proposals.findings import Finding

Cells = Literal["numbers", "probabilities", "classes", "grades", "sets", "ranked lists", "texts", "masks", "none"]
"""How grade.py reads what is submitted; "none": there is no function for this metric."""


@dataclass(frozen=True)
class Metric:
    """A metric. `of_several` is the function for several columns, "" if it is the mean over them."""

    name: str
    direction: Direction
    cells: Cells
    module: str = ""
    function: str = ""
    of_several: str = ""
    arguments: str = ""


_AUC = Metric("area under the ROC curve", "higher", "numbers", "ranking", "roc_auc", "mean_columnwise_roc_auc")
_LOG_LOSS = Metric("log loss", "lower", "probabilities", "probability", "log_loss")
_RMSE = Metric("root mean squared error", "lower", "numbers", "regression", "rmse", "mean_columnwise_rmse")
_ACCURACY = Metric("accuracy", "higher", "classes", "classification", "accuracy")
_KAPPA = Metric("quadratic weighted kappa", "higher", "grades", "classification", "quadratic_weighted_kappa")
_MACRO = Metric("macro F1", "higher", "classes", "classification", "f1_macro")
_LEVENSHTEIN = Metric("mean Levenshtein distance", "lower", "texts", "text", "levenshtein")
_MAP_K = Metric("mean average precision at k", "higher", "ranked lists", "ranking", "mean_average_precision_at_k")

METRICS: tuple[tuple[str, Metric], ...] = (
    (r"quadratic(?:ally)?[- ]weighted kappa", _KAPPA),
    (r"mcrmse|mean column-?wise root mean squared error", _RMSE),
    (
        r"rmsle|root mean squared log(?:arithmic)? error",
        Metric("root mean squared logarithmic error", "lower", "numbers", "regression", "rmsle", arguments="low=0"),
    ),
    (r"weighted (?:area|roc auc|auc)|auc[- ]weighted", Metric("weighted ROC AUC", "higher", "none")),
    (r"auc\b|roc\b|area under (?:the )?(?:receiver|roc)|area ?under", _AUC),
    (
        r"kullback|kl[- ]divergence",
        Metric("Kullback-Leibler divergence", "lower", "probabilities", "probability", "kl_divergence"),
    ),
    (r"weighted (?:multi-?label )?log(?:arithmic)? ?loss", Metric("weighted log loss", "lower", "none")),
    (r"log[- ]?loss|logarithmic loss|cross[- ]entropy|multiclass ?loss", _LOG_LOSS),
    (
        r"lwlrap|label[- ]ranking average precision",
        Metric(
            "label-weighted label-ranking average precision",
            "higher",
            "numbers",
            "ranking",
            "label_ranking_average_precision",
            "label_ranking_average_precision",
        ),
    ),
    (
        r"matthews",
        Metric("Matthews correlation coefficient", "higher", "classes", "classification", "matthews_corrcoef"),
    ),
    (r"spearman", Metric("Spearman correlation", "higher", "numbers", "correlation", "spearman")),
    (r"pearson", Metric("Pearson correlation", "higher", "numbers", "correlation", "pearson")),
    (r"kendall", Metric("Kendall tau", "higher", "none")),
    (r"probabilistic f", Metric("probabilistic F1", "higher", "numbers", "probability", "probabilistic_f1")),
    (r"f_?0\.5|f_?2\b|f-?beta|fbeta", Metric("F-beta", "higher", "none")),
    (
        r"macro[- ](?:averaged )?f|macrof|f1?(?:[- ]score)? (?:per|for each) (?:class|species|category)"
        r"|for (?:each|every) (?:class|species|category)\b[^.]{0,40}f1",
        _MACRO,
    ),
    (
        r"micro[- ](?:averaged )?f|f1?(?:[- ]score)? (?:with|over)[^.]{0,30}(?:micro|pairs)"
        r"|f1\b[^.]{0,80}(?:micro averag|pooled|summed)",
        Metric("micro-averaged F1", "higher", "sets", "classification", "f1_micro_sets"),
    ),
    (r"mean f-?_?1?|f1|f[- ]score|f-?measure", Metric("mean F1", "higher", "sets", "classification", "f1_mean_sets")),
    (r"jaccard|\|a ∩ b\|", Metric("mean word-level Jaccard score", "higher", "texts", "text", "word_jaccard")),
    (r"levenshtein|edit distance", _LEVENSHTEIN),
    (r"hausdorff", Metric("Hausdorff distance", "lower", "none")),
    (r"\bdice\b", Metric("mean Dice coefficient", "higher", "masks", "rle_columns", "dices")),
    (r"map@ ?\{?\d+\}?|map at \d+|mean average precision (?:at|@) ?\d+\b|map@\{?k\}?", _MAP_K),
    (r"average precision|\bmap\b|\biou\b|intersection over union", Metric("mean average precision", "higher", "none")),
    (
        r"log mean absolute error|log(?:arithm)? of (?:the )?(?:mean absolute error|mae)",
        Metric("group mean log MAE", "lower", "none"),
    ),
    (r"laplace", Metric("modified Laplace log likelihood", "higher", "none")),
    (r"angular|haversine", Metric("distance of directions or places", "lower", "none")),
    (r"mean absolute error|\bmae\b", Metric("mean absolute error", "lower", "numbers", "regression", "mae")),
    (r"root[- ]mean[- ]squared?[- ]error|rmse", _RMSE),
    (r"accuracy|share of [^.]{0,60}(?:right|correct|equals)|percentage of correct|categorization", _ACCURACY),
    (
        r"(?:top-?1 )?(?:classification )?error\b|share of [^.]{0,60}(?:differs|wrong)",
        Metric("classification error", "lower", "none"),
    ),
)
"""Patterns, more special ones first, and the metric that each names."""

_NEAREST = {
    "binary": _AUC,
    "classes": _ACCURACY,
    "class probabilities": _LOG_LOSS,
    "several labels": _AUC,
    "number": _RMSE,
    "several numbers": _RMSE,
    "item lists": _MAP_K,
    "text": _LEVENSHTEIN,
}
_CHANGED = re.compile(
    r"\bweighted (?!kappa)|weight \d|not scored|(?:are|is) not graded|only (?:the (?:first|last|rows)|those|rows)"
    r"|over the rows with|rounded|power mean|are averaged with",
    re.IGNORECASE,
)
"""Words of definitions that change a metric, so that the function is the nearest, perhaps not the same."""


_FITTING: dict[Cells, tuple[str, ...]] = {
    "sets": ("item lists",),
    "masks": ("masks",),
    "ranked lists": ("classes", "text", "item lists"),
    "grades": ("classes",),
    "texts": ("text", "classes"),
}
"""The kinds of targets that fit a metric of these cells; others fit it only if somebody says so."""
DEPEND_ON_KIND = _FITTING.keys()


def metric_of(kind: str, name: str, text: str) -> Finding[Metric]:
    """The metric that Kaggle's field `name`, or else the evaluation page's text, names; the nearest for the kind.

    >>> metric_of("binary", "Area Under Receiver Operating Characteristic Curve", "").value.function
    'roc_auc'
    >>> metric_of("number", "", "The score is a secret.").sure
    False
    """
    found = _named(name) or _named(text)
    if found is None:
        nearest = _NEAREST.get(kind, Metric("unknown", "higher", "none"))
        return Finding(nearest, f"the evaluation page names no known metric; {nearest.name} is usual for {kind}", False)
    metric, words = found
    metric = _for_kind(metric, kind)
    if metric.cells == "none":
        return Finding(metric, f"there is no function for {metric.name} of this kind: write one", False)
    if k := re.search(r"\d+\Z", words) if metric is _MAP_K else None:
        metric = Metric(f"mean average precision at {k[0]}", *_fields(_MAP_K), arguments=k[0])
    elif metric is _MAP_K:
        metric = Metric(_MAP_K.name, *_fields(_MAP_K), arguments="5")
        return Finding(metric, "say how many items of each list count", False)
    if (changed := _CHANGED.search(text)) and not metric.name.startswith(("quadratic weighted", "label-weighted")):
        return Finding(metric, f"the evaluation page says {changed[0]!r}: is it this function?", False)
    if metric.cells in ("numbers", "probabilities") and kind in ("text", "masks", "boxes", "item lists"):
        return Finding(metric, f"the evaluation page says {words!r}, which is of numbers, not {kind}", False)
    if kind not in _FITTING.get(metric.cells, (kind,)):
        return Finding(metric, f"the evaluation page says {words!r}, which is unusual for {kind}", False)
    return Finding(metric, f"the evaluation page says {words!r}", True)


def _fields(metric: Metric) -> tuple[Direction, Cells, str, str]:
    return metric.direction, metric.cells, metric.module, metric.function


def _named(text: str) -> tuple[Metric, str] | None:
    """The metric that is named first; of several patterns at the same place the first one in the table."""
    lower = text.lower()
    found = [
        (match.start(), number, match[0])
        for number, (pattern, _) in enumerate(METRICS)
        if (match := re.search(pattern, lower))
    ]
    if not found:
        return None
    _, number, words = min(found)
    return METRICS[number][1], words


def _for_kind(metric: Metric, kind: str) -> Metric:
    """What F1 is for single labels: micro-averaged it is the accuracy, else Kaggle means that of each class."""
    if metric.cells == "sets" and kind == "classes":
        return _ACCURACY if "micro" in metric.name else _MACRO
    if metric.cells == "sets" and kind == "binary":
        return Metric("F1 of the positive class", "higher", "none")
    return metric
