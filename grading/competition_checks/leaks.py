"""Answers in public tables: under any column name, by the ids of the test set or by the order of its rows."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Any

from grading.competition_checks.public_tables import read_texts

if TYPE_CHECKING:
    import pandas as pd

_MIN_EQUAL_SHARE = 0.95
"""Share of equal cells from which a column counts as the answers. A leak with some noise is a leak as well."""
_MIN_ANSWERS = 10
"""Minimum number of rows. With fewer, cells can be equal by chance."""
_REVEALING_NAME = re.compile(r"answers?|solutions?|gold|ground[_-]?truth|test[_-]?(?:labels?|targets?|answers?)", re.I)
_HARMLESS = re.compile(r"train|sample", re.I)
"""Words in the path of training data and of sample submissions, in which values of an answer column are expected."""


@dataclass(frozen=True)
class Answers:
    """The answers of a test set as texts: one column for each that a submission has to predict, by id."""

    id_name: str
    table: pd.DataFrame
    """Index: ids. Columns: answers."""
    sample: pd.DataFrame
    """The same columns of the sample submission, which is public."""


def answers_of(gold: bytes, sample: bytes) -> Answers | None:
    """The answers in a gold submission: the columns whose values are not those of the sample submission.

    None if there is no column of ids, or if ids are repeated.
    """
    gold_table, sample_table = read_texts(gold), read_texts(sample)
    if (
        gold_table is None
        or sample_table is None
        or gold_table.empty
        or list(gold_table.columns) != list(sample_table.columns)
    ):
        return None
    id_name = str(gold_table.columns[0])
    if not gold_table[id_name].is_unique or set(gold_table[id_name]) != set(sample_table[id_name]):
        return None
    gold_table, sample_table = gold_table.set_index(id_name), sample_table.set_index(id_name).loc[gold_table[id_name]]
    # One value for all rows is equal to any constant column.
    predicted = [
        name for name in gold_table if (gold_table[name] != sample_table[name]).any() and gold_table[name].nunique() > 1
    ]
    return Answers(id_name, gold_table[predicted], sample_table[predicted]) if predicted else None


def names_that_give_away(paths: Iterable[str]) -> list[str]:
    """The paths whose file is named like one with answers of the test set.

    >>> names_that_give_away(["train.csv", "test_labels.csv", "a/solution.tsv", "train/7/ground_truth.csv"])
    ['test_labels.csv', 'a/solution.tsv']
    """
    named = [path for path in paths if _REVEALING_NAME.fullmatch(PurePosixPath(path).name.split(".")[0])]
    return [path for path in named if not _HARMLESS.search(path)]


def leaks(name: str, table: pd.DataFrame, answers: Answers) -> Iterator[str]:
    """The answers that a public table reveals, one line for each column."""
    ids = answers.table.index
    keys = [column for column in table if table[column].isin(ids).mean() > 0 and _has_ids(table[column], ids)]
    for key in keys:
        rows = table[table[key].isin(ids)].drop_duplicates(key).set_index(key)
        yield from _compare(name, rows, answers.table.loc[rows.index], f"by {key}")
        if key != answers.id_name or _HARMLESS.search(name) or table[key].isin(ids).mean() < _MIN_EQUAL_SHARE:
            continue  # ids of training rows may be the same numbers
        answer_columns = [
            column for column in answers.table if column in rows and (rows[column].str.strip() != "").any()
        ]
        for column in answer_columns:
            as_sample = _equal(rows[column].to_numpy(), answers.sample[column].loc[rows.index].to_numpy())
            if rows[column].nunique() > 1 and as_sample < _MIN_EQUAL_SHARE:
                yield f"public/{name} has values in the answer column {column} for ids of the test set"
    if not keys and len(table) == len(ids):
        yield from _compare(name, table, answers.table, "row by row")


def _compare(name: str, rows: pd.DataFrame, answers: pd.DataFrame, how: str) -> Iterator[str]:
    if len(rows) < _MIN_ANSWERS:
        return
    for answer in answers:
        truth = answers[answer]
        if truth.nunique() < 2:
            continue
        commonest = truth.value_counts(normalize=True).iloc[0]
        for column in rows:
            share = _equal(rows[column].to_numpy(), truth.to_numpy())
            # Above what one constant value would reach.
            if share >= _MIN_EQUAL_SHARE and share > commonest + (1 - commonest) / 2:
                yield f"public/{name} has the answers {answer} in its column {column} ({how}, {share:.0%} are equal)"


def _equal(left: Any, right: Any) -> float:
    import numpy as np
    import pandas as pd

    left_texts, right_texts = pd.Series(left, dtype=str), pd.Series(right, dtype=str)
    same = left_texts == right_texts
    numbers = pd.to_numeric(left_texts, errors="coerce"), pd.to_numeric(right_texts, errors="coerce")
    return float((same | np.isclose(*numbers, rtol=1e-9, atol=0)).mean())


def _has_ids(column: pd.Series, ids: pd.Index) -> bool:
    """Whether a column has most ids of the test set; a few numbers are in many columns by chance."""
    return ids.isin(column).mean() > 0.5
