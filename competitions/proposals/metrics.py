"""What evaluation pages call metrics, and the functions that compute them."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import Literal

from competitions.facts import Direction
from competitions.proposals.findings import Finding

Cells = Literal["numbers", "probabilities", "classes", "grades", "sets", "ranked lists", "texts", "masks", "none"]
"""How grade.py reads what is submitted; "none": there is no function for this metric, or none of this form."""


@dataclass(frozen=True)
class Metric:
    """A metric, and the function in a module of competitions.scoring.metrics that computes it.

    Attributes:
        of_several: the function for several columns; "" if the score is the mean over them.
        arguments: further arguments of the function.
        own: beginnings of words in `_CHANGES` that its definition has itself.
    """

    name: str
    direction: Direction
    cells: Cells = "none"
    module: str = ""
    function: str = ""
    of_several: str = ""
    arguments: str = ""
    own: tuple[str, ...] = ()


_AUC = Metric(
    "area under the ROC curve", "higher", "numbers", "ranking", "roc_auc", "mean_columnwise_roc_auc", own=("negati",)
)
_LOG_LOSS = Metric("log loss", "lower", "probabilities", "probability", "log_loss", own=("clip", "log", "negati"))
_RMSE = Metric("root mean squared error", "lower", "numbers", "regression", "rmse", "mean_columnwise_rmse")
_RMSLE = Metric(
    "root mean squared logarithmic error", "lower", "numbers", "regression", "rmsle", arguments="low=0", own=("log",)
)
_ACCURACY = Metric("accuracy", "higher", "classes", "classification", "accuracy")
_MACRO = Metric("macro F1", "higher", "classes", "classification", "f1_macro")
_MEAN_F1 = Metric("mean F1", "higher", "sets", "classification", "f1_mean_sets")
_LEVENSHTEIN = Metric("mean Levenshtein distance", "lower", "texts", "text", "levenshtein")
_MAP_K = Metric("mean average precision at k", "higher", "ranked lists", "ranking", "mean_average_precision_at_k")
_ANOTHER = Metric("another error", "lower")

METRICS: tuple[tuple[str, Metric], ...] = (
    (
        r"quadratic(?:ally)?[- ]weighted kappa",
        Metric(
            "quadratic weighted kappa", "higher", "grades", "classification", "quadratic_weighted_kappa", own=("weigh",)
        ),
    ),
    (r"mcrmse|(?:mean column-?wise )?root[- ]mean[- ]squared?[- ]error|rmse", _RMSE),
    (r"rmsle|root mean squared? log(?:arithm(?:ic)?)? error", _RMSLE),
    (r"weighted (?:area|roc auc|auc)|auc[- ]weighted", Metric("weighted ROC AUC", "higher")),
    (r"partial (?:area|auc|roc)|\bpauc\b", Metric("partial area under the ROC curve", "higher")),
    (
        r"(?:under (?:the )?)?precision[- ]recall|pr[- ]?auc|auc?prc?\b",
        Metric("area under the precision-recall curve", "higher"),
    ),
    (r"\bgini", Metric("Gini coefficient", "higher")),
    (r"(?:\b|roc_?)auc\b|roc\b|area under (?:the )?(?:receiver|roc)|area ?under", _AUC),
    (
        r"kullback|kl[- ]divergence",
        Metric(
            "Kullback-Leibler divergence", "lower", "probabilities", "probability", "kl_divergence", own=_LOG_LOSS.own
        ),
    ),
    (r"weighted (?:multi-?label )?log(?:arithmic)? ?loss", Metric("weighted log loss", "lower")),
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
            own=("weigh",),
        ),
    ),
    (
        r"matthews",
        Metric("Matthews correlation coefficient", "higher", "classes", "classification", "matthews_corrcoef"),
    ),
    (r"spearman", Metric("Spearman correlation", "higher", "numbers", "correlation", "spearman")),
    (r"pearson", Metric("Pearson correlation", "higher", "numbers", "correlation", "pearson")),
    (r"kendall", Metric("Kendall tau", "higher")),
    (
        r"probabilistic f",
        Metric("probabilistic F1", "higher", "numbers", "probability", "probabilistic_f1", own=_LOG_LOSS.own),
    ),
    (r"f_?0\.5|f_?2\b|f-?beta|fbeta", Metric("F-beta", "higher")),
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
    (r"hausdorff", Metric("Hausdorff distance", "lower")),
    (r"\bdice\b", Metric("mean Dice coefficient", "higher", "masks", "rle_columns", "dices")),
    (r"map@ ?\{?\d+\}?|map at \d+|mean average precision (?:at|@) ?\d+\b|map@\{?k\}?", _MAP_K),
    (r"average precision|\bmap\b|\biou\b|intersection over union", Metric("mean average precision", "higher")),
    (
        r"log mean absolute error|log(?:arithm)? of (?:the )?(?:mean absolute error|mae)",
        Metric("group mean log MAE", "lower"),
    ),
    (r"laplace", Metric("modified Laplace log likelihood", "higher")),
    (r"angular|haversine", Metric("distance of directions or places", "lower")),
    (r"percentage error|\bs?mape\b|\brmspe\b", Metric("percentage error", "lower")),
    (r"scaled error|w?rmsse|\bmase\b", Metric("scaled error", "lower")),
    (r"quantile loss|pinball|ranked probability|\bcrps\b", Metric("quantile loss", "lower")),
    (r"brier", Metric("Brier score", "lower")),
    (r"\br\^?2\b|r[- ]squared|r²|coefficient of determination", Metric("coefficient of determination", "higher")),
    (r"concordance|c-index", Metric("concordance index", "higher")),
    (r"ndcg|discounted cumulative", Metric("normalized discounted cumulative gain", "higher")),
    (r"recall ?@|recall at \d", Metric("recall at k", "higher")),
    (
        r"balanced accuracy|top-?[2-9]\d* accuracy|average of (?:the )?recall",
        Metric("balanced or top-k accuracy", "higher"),
    ),
    (r"mean absolute error|\bmae\b", Metric("mean absolute error", "lower", "numbers", "regression", "mae")),
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
_CHANGES = {
    "weights": r"weigh|balanc|sensitiv",
    "scale": r"\blog(?!istic|[- ]?loss)|normali[sz]|transform|exponent|round|clip|capp|minus|negati|similarity"
    r"|lower means|power mean",
    "part": r"ignor|\bonly\b|exclu|skip|surface|within|above|below"
    r"|\bnot (?:be )?(?:scored|graded|counted|evaluated|by)",
    "groups": r"macro|micro|group|worst|hierarch",
    "means": r"averag|separate|\bper (?!row|line|id)|(?:for|of|in|within) (?:each|every) (?!id|row|line)",
}
"""Words near a metric's name that may change it, by what they change: the weights of rows, the scale of values or of
the score, the part of the rows that counts, their groups, and what means are taken of."""
_CHANGED = re.compile("|".join(f"(?P<{what}>{words})" for what, words in _CHANGES.items()), re.IGNORECASE)
_ABOUT_SCORES = re.compile(
    r"\x00|scor|evaluat|metric|comput|calculat|compar|averag|ignor|grade|group|lower means", re.IGNORECASE
)
"""Sentences in which these words count; \x00 stands for the metric's name."""
_FORMAT = re.compile(r"\bfiles?\b|header|format\b|(?:must|should|have to|need to|are asked to) predict", re.IGNORECASE)
"""Sentences about the form of submissions, in which they do not."""
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
        nearest = _NEAREST.get(kind, Metric("unknown", "higher"))
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
    by_row = metric.cells in ("texts", "masks", "ranked lists", "sets")
    several = kind.startswith("several") or kind == "class probabilities"
    rest = _blanked(text, metric)
    for sentence in re.split(r"(?<=[.!?])\s|\n", rest):
        if _FORMAT.search(sentence) or not _ABOUT_SCORES.search(sentence):
            continue
        over = by_row or (several and _OF_COLUMNS.search(sentence))
        for found in _CHANGED.finditer(sentence):
            if not found[0].lower().startswith(metric.own) and not (over and found.lastgroup == "means"):
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
        return Metric("F1 of the positive class", "higher")
    return metric
