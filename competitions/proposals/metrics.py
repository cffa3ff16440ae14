"""What evaluation pages call metrics, and the functions that compute them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
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
_RMSLE = Metric("root mean squared logarithmic error", "lower", "numbers", "regression", "rmsle", arguments="low=0")
_PEARSON = Metric("Pearson correlation", "higher", "numbers", "correlation", "pearson")
_ACCURACY = Metric("accuracy", "higher", "classes", "classification", "accuracy")
_KAPPA = Metric("quadratic weighted kappa", "higher", "grades", "classification", "quadratic_weighted_kappa")
_MACRO = Metric("macro F1", "higher", "classes", "classification", "f1_macro")
_LEVENSHTEIN = Metric("mean Levenshtein distance", "lower", "texts", "text", "levenshtein")
_MAP_K = Metric("mean average precision at k", "higher", "ranked lists", "ranking", "mean_average_precision_at_k")

_ANOTHER = Metric("another error", "lower", "none")
_MEAN_F1 = Metric("mean F1", "higher", "sets", "classification", "f1_mean_sets")


def _none(direction: Direction, name: str, pattern: str) -> Iterator[tuple[str, Metric]]:
    """The row of a metric for which there is no function, or none of this form."""
    yield pattern, Metric(name, direction, "none")


METRICS: tuple[tuple[str, Metric], ...] = (
    (r"quadratic(?:ally)?[- ]weighted kappa", _KAPPA),
    (r"mcrmse|mean column-?wise root mean squared error", _RMSE),
    (r"rmsle|root mean squared? log(?:arithm(?:ic)?)? error", _RMSLE),
    *_none("higher", "weighted ROC AUC", r"weighted (?:area|roc auc|auc)|auc[- ]weighted"),
    *_none("higher", "partial area under the ROC curve", r"partial (?:area|auc|roc)|\bpauc\b"),
    *_none(
        "higher",
        "area under the precision-recall curve",
        r"(?:under (?:the )?)?precision[- ]recall|pr[- ]?auc|auc?prc?\b",
    ),
    *_none("higher", "Gini coefficient", r"\bgini"),
    (r"(?:\b|roc_?)auc\b|roc\b|area under (?:the )?(?:receiver|roc)|area ?under", _AUC),
    (
        r"kullback|kl[- ]divergence",
        Metric("Kullback-Leibler divergence", "lower", "probabilities", "probability", "kl_divergence"),
    ),
    *_none("lower", "weighted log loss", r"weighted (?:multi-?label )?log(?:arithmic)? ?loss"),
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
    (r"pearson", _PEARSON),
    *_none("higher", "Kendall tau", r"kendall"),
    (r"probabilistic f", Metric("probabilistic F1", "higher", "numbers", "probability", "probabilistic_f1")),
    *_none("higher", "F-beta", r"f_?0\.5|f_?2\b|f-?beta|fbeta"),
    (
        r"macro[- ](?:averaged )?f|macrof|f1?(?:[- ]score)? (?:per|for each) (?:class|species|category)"
        r"|for (?:each|every) (?:class|species|category)\b[^.]{0,40}f1",
        _MACRO,
    ),
    (r"(?:row|sample|example|image)[- ]?wise micro|mean f-?_?1", _MEAN_F1),
    (
        r"micro[- ](?:averaged )?f|f1?(?:[- ]score)? (?:with|over)[^.]{0,30}(?:micro|pairs)"
        r"|f1\b[^.]{0,80}(?:micro averag|pooled|summed)",
        Metric("micro-averaged F1", "higher", "sets", "classification", "f1_micro_sets"),
    ),
    (r"mean f-?_?1?|f1|f[- ]score|f-?measure", _MEAN_F1),
    (r"jaccard|\|a ∩ b\|", Metric("mean word-level Jaccard score", "higher", "texts", "text", "word_jaccard")),
    (r"levenshtein|edit distance", _LEVENSHTEIN),
    *_none("lower", "Hausdorff distance", r"hausdorff"),
    (r"\bdice\b", Metric("mean Dice coefficient", "higher", "masks", "rle_columns", "dices")),
    (r"map@ ?\{?\d+\}?|map at \d+|mean average precision (?:at|@) ?\d+\b|map@\{?k\}?", _MAP_K),
    *_none("higher", "mean average precision", r"average precision|\bmap\b|\biou\b|intersection over union"),
    *_none(
        "lower",
        "group mean log MAE",
        r"log mean absolute error|log(?:arithm)? of (?:the )?(?:mean absolute error|mae)",
    ),
    *_none("higher", "modified Laplace log likelihood", r"laplace"),
    *_none("lower", "distance of directions or places", r"angular|haversine"),
    *_none("lower", "percentage error", r"percentage error|\bs?mape\b|\brmspe\b"),
    *_none("lower", "scaled error", r"scaled error|w?rmsse|\bmase\b"),
    *_none("lower", "quantile loss", r"quantile loss|pinball|ranked probability|\bcrps\b"),
    *_none("lower", "Brier score", r"brier"),
    *_none("higher", "coefficient of determination", r"\br\^?2\b|r[- ]squared|r²|coefficient of determination"),
    *_none("higher", "concordance index", r"concordance|c-index"),
    *_none("higher", "normalized discounted cumulative gain", r"ndcg|discounted cumulative"),
    *_none("higher", "recall at k", r"recall ?@|recall at \d"),
    *_none(
        "higher", "balanced or top-k accuracy", r"balanced accuracy|top-?[2-9]\d* accuracy|average of (?:the )?recall"
    ),
    (r"mean absolute error|\bmae\b", Metric("mean absolute error", "lower", "numbers", "regression", "mae")),
    (r"root[- ]mean[- ]squared?[- ]error|rmse", _RMSE),
    (r"accuracy|share of [^.]{0,60}(?:right|correct|equals)|percentage of correct|categorization", _ACCURACY),
    (r"\berror\b|share of [^.]{0,60}(?:differs|wrong)", _ANOTHER),
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
    r"weigh|\blog(?!istic|[- ]?loss)|normali[sz]|balanc|averag|macro|micro|group|similarity|minus|negati|ignor"
    r"|\bonly\b|exclu|skip|clip|capp|round|transform|exponent|separate|worst|sensitiv|surface|hierarch|within|above"
    r"|below|lower means|power mean|\bnot (?:be )?(?:scored|graded|counted|evaluated|by)|\bper (?!row|line|id)"
    r"|(?:for|of|in|within) (?:each|every) (?!id|row|line)",
    re.IGNORECASE,
)
"""Words near a metric's name that may change it, so that the function is the nearest, perhaps not the same."""
_ABOUT_SCORES = re.compile(
    r"\x00|scor|evaluat|metric|comput|calculat|compar|averag|ignor|grade|group|lower means", re.IGNORECASE
)
_FORMAT = re.compile(r"\bfiles?\b|header|format\b|(?:must|should|have to|need to|are asked to) predict", re.IGNORECASE)
"""Sentences about the form of submissions."""
_OVER = ("averag", "each ", "every ", "per ", "separate")  # what means of columns, and of texts of rows, are said to be
_OWN = {"ranking": ("negati",), "probability": ("clip", "log", "negati")}
"""Words that definitions of the metrics of a module contain themselves."""


_FITTING: dict[Cells, tuple[str, ...]] = {
    "sets": ("item lists",),
    "masks": ("masks",),
    "ranked lists": ("classes", "text", "item lists"),
    "grades": ("classes",),
    "texts": ("text", "classes"),
}
"""The kinds of targets that fit a metric of these cells; others fit it only if somebody says so."""
DEPEND_ON_KIND = _FITTING.keys()


_OF_COLUMNS = re.compile(
    r"column-?wise|mcrm|(?:each|every|over|of)(?: \w+)? (?:columns?|targets?|class(?:es)?|labels?)\b"
    r"|each of the (?:\w+ ){1,3}categories",
    re.IGNORECASE,
)


def metric_of(kind: str, name: str, text: str) -> Finding[Metric]:
    """The metric that Kaggle's field `name`, or else the evaluation page's text, names; the nearest for the kind.

    >>> metric_of("binary", "Area Under Receiver Operating Characteristic Curve", "").value.function
    'roc_auc'
    >>> metric_of("number", "", "The score is a secret.").sure
    False
    """
    named = _named(name) or _named(text)
    if not named:
        nearest = _NEAREST.get(kind, Metric("unknown", "higher", "none"))
        return Finding(nearest, f"the evaluation page names no known metric; {nearest.name} is usual for {kind}", False)
    metric, words = named[0]
    metric = _for_kind(metric, kind)
    if metric.cells == "none":
        return Finding(metric, f"there is no function for {metric.name} of this kind: write one", False)
    if k := re.search(r"\d+\Z", words) if metric is _MAP_K else None:
        metric = replace(_MAP_K, name=f"mean average precision at {k[0]}", arguments=k[0])
    elif metric is _MAP_K:
        return Finding(replace(metric, arguments="5"), "say how many items of each list count", False)
    doubt = ""
    others = [other for other, _ in [*named, *_named(text)] if other not in (named[0][0], _ANOTHER)]
    if changed := _changed(f"{name}. {text}", named[0][0], kind):
        doubt = f"says {changed!r}: is it this function?"
    elif others:
        doubt = f"says {words!r}, but also names {others[0].name}"
    elif named[0][0] is _MEAN_F1 and metric is _MACRO:
        doubt = f"says {words!r}: is each class weighted alike?"
    if metric in (_RMSE, _RMSLE) and kind == "several numbers" and not _OF_COLUMNS.search(f"{name} {text}"):
        doubt = f"says {words!r}: is it the mean over columns?"
    if metric.cells in ("numbers", "probabilities") and kind in ("text", "masks", "boxes", "item lists"):
        doubt = f"says {words!r}, which is of numbers, not {kind}"
    elif kind not in _FITTING.get(metric.cells, (kind,)):
        doubt = f"says {words!r}, which is unusual for {kind}"
    return Finding(metric, f"the evaluation page {doubt or f'says {words!r}'}", not doubt)


def _changed(text: str, metric: Metric, kind: str) -> str:
    """A word that may change the metric, near its name or in a sentence about scores; "" if there is none."""
    own = ("weigh",) if "weighted" in metric.name else _OWN.get(metric.module, ())
    own = ("log",) if metric is _RMSLE else own
    by_row = metric.cells in ("texts", "masks", "ranked lists", "sets")
    several = kind.startswith("several") or kind == "class probabilities"
    rest = _blanked(text, metric)
    for sentence in re.split(r"(?<=[.!?])\s|\n", rest):
        if _FORMAT.search(sentence) or not _ABOUT_SCORES.search(sentence):
            continue
        over = by_row or (several and _OF_COLUMNS.search(sentence))
        for found in _CHANGED.finditer(sentence):
            word = found[0].lower()
            if not word.startswith(own) and not (over and word.endswith(_OVER)):
                return found[0]
    arithmetic = re.search(r"(?<![a-z\x00])[-−*/+] ?\(? ?\x00|\x00\)? ?[-−*/+] ?[\d(]|\x00/", rest, re.IGNORECASE)
    return arithmetic[0].replace("\x00", metric.name) if arithmetic else ""


def _blanked(text: str, metric: Metric) -> str:
    """The text with a mark in place of the names of the metric."""
    for pattern, each in METRICS:
        if each == metric:
            text = re.sub(pattern, "\x00", text, flags=re.IGNORECASE)
    return text


def _named(text: str) -> list[tuple[Metric, str]]:
    """The metrics that are named, in their order, and by which words; of overlapping words the first row counts."""
    found: list[tuple[int, int, Metric]] = []
    for pattern, metric in METRICS:
        for match in re.finditer(pattern, text.lower()):
            if all(match.end() <= start or end <= match.start() for start, end, _ in found):
                found.append((*match.span(), metric))
    return [(metric, text.lower()[start:end]) for start, end, metric in sorted(found, key=lambda each: each[:2])]


def _for_kind(metric: Metric, kind: str) -> Metric:
    """What F1 is for single labels: micro-averaged it is the accuracy, else Kaggle means that of each class."""
    if metric.cells == "sets" and kind == "classes":
        return _ACCURACY if "micro" in metric.name else _MACRO
    if metric.cells == "sets" and kind == "binary":
        return Metric("F1 of the positive class", "higher", "none")
    return metric
