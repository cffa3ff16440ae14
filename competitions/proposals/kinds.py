"""What the targets of a competition are."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Literal

from competitions.proposals.findings import Finding

if TYPE_CHECKING:
    import pandas as pd

    from competitions.proposals.columns import Labels

Kind = Literal[
    "binary",
    "classes",
    "class probabilities",
    "several labels",
    "number",
    "several numbers",
    "item lists",
    "text",
    "masks",
    "boxes",
]

_RUNS = re.compile(r"\d+ \d+(?: \d+ \d+)*")
_BOXES = re.compile(r"(?:\S+ )?-?[\d.]+(?: \S+){3,}")
_MOST_CLASSES = 1000  # AutoGluon's limit for whole numbers; more of them are a regression
_MIN_PER_CLASS = 1.5  # rows for each different text; with fewer it is text, not a class
_HEAD = 5000


def kind_of(labels: Labels | None, targets: Sequence[str]) -> Finding[Kind]:
    """The kind of the targets, by the cells of the training data."""
    if labels is None:
        many = len(targets) > 1
        return Finding("several numbers" if many else "number", "there are no labels to look at", False)
    if labels.form == "one-hot":
        return Finding("class probabilities", "each row has one of the submitted columns as its class", True)
    if labels.form == "lists":
        return Finding("several labels", "each row has a list of the submitted columns", True)
    rows = labels.table.rows
    if any(rows[name].astype(str).head(_HEAD).str.fullmatch(r"\[.*\]|\{.*\}").all() for name in labels.source):
        return Finding("several numbers", "the cells are lists", False)
    if len(labels.source) > 1:
        return _several(rows[list(labels.source)])
    cells = rows[labels.source[0]].dropna()
    if cells.dtype.kind in "iufb":
        return _of_numbers(cells)
    return _of_texts(cells.astype(str))


def _several(cells: pd.DataFrame) -> Finding[Kind]:
    if any(dtype.kind not in "iufb" for dtype in cells.dtypes):
        return Finding("text", "several columns, of which some are text", False)
    if cells.isin([0, 1]).all(axis=None):
        if (cells.sum(axis=1) == 1).all():
            return Finding("class probabilities", "0 or 1, and 1 in one column of each row", True)
        return Finding("several labels", "0 or 1 in several columns", True)
    return Finding("several numbers", "numbers in several columns", True)


def _of_numbers(cells: pd.Series) -> Finding[Kind]:
    different = cells.nunique()
    if different <= 2:
        return Finding("binary", f"{different} different values", True)
    whole = cells.dtype.kind in "iu" or bool((cells % 1 == 0).all())
    if whole and different <= _MOST_CLASSES and len(cells) >= _MIN_PER_CLASS * different:
        return Finding("classes", f"{different} different whole numbers", different <= _MOST_CLASSES / 10)
    return Finding("number", f"{different} different numbers in {len(cells)} rows", True)


def _of_texts(cells: pd.Series) -> Finding[Kind]:
    head, different = cells.head(_HEAD), cells.nunique()
    if different == 2:
        return Finding("binary", "two different texts", True)
    if len(head) and head.map(lambda cell: bool(_RUNS.fullmatch(cell.strip()))).all():
        long = head.str.count(" ").max() > 2
        return Finding("masks", "pairs of whole numbers, as in run lengths", bool(long))
    if len(head) and head.map(lambda cell: bool(_BOXES.fullmatch(cell.strip()))).mean() > 0.9:
        return Finding("boxes", "groups of numbers, as of boxes", False)
    for separator in (None, ",", ";", "|"):
        words = head.str.split(separator, regex=False)
        vocabulary = {word for row in words for word in row}
        several = words.map(len)
        repeated = several.sum() > _MIN_PER_CLASS * len(vocabulary) and len(vocabulary) <= different
        if several.max() > 1 and repeated and _are_names(vocabulary):
            apart = f", with {separator!r} between them: functions take those with blanks" if separator else ""
            return Finding("item lists", f"lists of {len(vocabulary)} different items{apart}", not separator)
    if len(cells) >= _MIN_PER_CLASS * different:
        return Finding("classes", f"{different} different texts in {len(cells)} rows", True)
    return Finding("text", f"{different} different texts in {len(cells)} rows", True)


def _are_names(words: set[str]) -> bool:
    """Whether words look like ids or labels, not like words of a sentence."""
    return not any(word.endswith(tuple(".,;:!?")) for word in words)
