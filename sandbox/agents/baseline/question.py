"""Infer the task from the sample submission: which column identifies a row, what to predict, and in which form."""

from __future__ import annotations

import re
import zipfile
from dataclasses import dataclass
from pathlib import Path

import discover
import pandas as pd

CHANCES = re.compile(r"area under|\bauc\b|log[ -]?loss|cross[ -]entropy", re.IGNORECASE)
READ_ROWS = 1_000_000
READ_TABLES = 20
CLASSES = 100


class NotUnderstood(Exception):
    """The agent cannot handle this kind of data."""


@dataclass
class Target:
    """Something to predict for every test row."""

    columns: list[str]
    """Columns of the submission to fill."""
    kind: str
    """``number``, ``label``, ``probability`` (of the greater of two values) or ``classes`` (probability per class)."""
    values: pd.Series
    """The true values of the training rows."""
    explanation: str


@dataclass
class Question:
    """The task: the ids of the submission, the tables to learn from, and the targets."""

    ids: pd.Series
    """The ids of the rows to predict, in the order of the submission."""
    train: pd.DataFrame
    train_name: str
    train_key: str
    test: pd.DataFrame | None
    test_name: str
    targets: list[Target]

    def feature_columns(self) -> list[str]:
        """Columns that both the training and the test table have, apart from the id."""
        taken = {self.ids.name, self.train_key, *(target.values.name for target in self.targets)}
        columns = set() if self.test is None else set(self.test.columns)
        return [column for column in self.train.columns if column in columns - taken]

    def test_rows(self) -> pd.DataFrame:
        """The rows of the test table in the order of the submission. Without ids, their own order is kept."""
        assert self.test is not None
        if self.ids.name in self.test and self.test[self.ids.name].is_unique:
            numbers = pd.Series(range(len(self.test)), index=self.test[self.ids.name].astype(str)).reindex(self.ids)
            numbers = numbers.reset_index(drop=True).dropna().astype(int)
            return self.test.iloc[numbers].set_axis(numbers.index)
        if len(self.test) != len(self.ids):
            raise NotUnderstood(f"{self.test_name} has neither the ids nor the number of rows of the submission")
        return self.test


def understand(data: Path, sample_path: Path, sample: pd.DataFrame) -> Question:
    """Find the training and test tables and the targets."""
    named = [path for path in discover.tables(data) if path != sample_path][:READ_TABLES]
    test, test_name = None, "no table"
    for path in named:
        if "test" in path.name.lower() and "train" not in path.name.lower():
            table = _read(path)
            common = len(set(sample.columns) & set(table.columns))
            if common < sample.shape[1] and (test is None or common > len(set(sample.columns) & set(test.columns))):
                test, test_name = table, path.name
    known = [column for column in sample.columns if test is not None and column in test.columns]
    key = known[0] if known else sample.columns[0]
    asked = [column for column in sample.columns if column not in known and column != key]
    description = data / "description.md"
    chances = bool(description.is_file() and CHANCES.search(description.read_text(errors="replace")))
    likely = sorted(named, key=lambda path: -2 * ("train" in path.name.lower()) - ("label" in path.name.lower()))
    for path in likely:
        if path.name == test_name:
            continue
        train = _read(path, nrows=READ_ROWS)
        if targets := _targets(sample, asked, train, test, key, chances):
            train_key = key if key in train else str(train.columns[0])
            print(f"training table {path.name} ({len(train)} rows), id {key}, test table {test_name}")
            return Question(sample[key], train, path.name, train_key, test, test_name, targets)
    train = _labels_from_paths(data, key)
    if train[key].nunique() and (targets := _targets(sample, asked, train, None, key, chances)):
        print(f"{len(train)} training images, named after their class or in a folder of its name")
        return Question(sample[key], train, "paths", key, None, "none", targets)
    raise NotUnderstood(f"no table contains {', '.join(asked[:5])} of training rows")


def _read(path: Path, **options: int) -> pd.DataFrame:
    """Read a table; an empty one if the file does not contain a table."""
    try:
        return discover.read_table(path, **options)
    except (ValueError, OSError, zipfile.BadZipFile) as problem:
        print(f"{path.name} is not a table: {problem}")
        return pd.DataFrame()


def _labels_from_paths(data: Path, key: str) -> pd.DataFrame:
    """Training images whose folder, or first part of the name (``cat.1.jpg``), is their class."""
    paths = sorted(name for name in discover.images(data)[0] if "/" in name and "train" in name.lower())
    labels = [path.split("/")[-2] for path in paths]
    if len(set(labels)) < 2:
        labels = [path.split("/")[-1].split(".")[0] for path in paths]
    return pd.DataFrame({key: paths, "class": labels}, dtype=object)


def _targets(
    sample: pd.DataFrame, asked: list[str], train: pd.DataFrame, test: pd.DataFrame | None, key: str, chances: bool
) -> list[Target]:
    if asked and all(column in train for column in asked):
        return [_target(column, train[column], sample[column], chances) for column in asked]
    hidden = [name for name in train.columns if name != key and (test is None or name not in test)]
    hidden = [name for name in hidden if not train[name].map(lambda value: isinstance(value, (list, dict))).any()]
    if len(asked) == 1:
        # The target has another name in the training table: it is the only column that the test table lacks, or one
        # with few values.
        few = hidden if len(hidden) == 1 else [name for name in hidden if 1 < train[name].nunique() <= CLASSES]
        return [_target(asked[0], train[few[0]], sample[asked[0]], chances)] if few else []
    for name in hidden:
        values = set(train[name].dropna().astype(str))
        if len(values & set(asked)) > max(1, 0.9 * len(values)):
            explanation = f"the {len(asked)} columns are values of {name}: predict a probability for each"
            return [Target(asked, "classes", train[name].astype("string"), explanation)]
    return []


def _target(column: str, truth: pd.Series, shown: pd.Series, chances: bool) -> Target:
    """Infer the form of one column from the training data, the sample submission and the description."""
    values = truth.dropna()
    distinct = values.nunique()
    two_state = pd.api.types.is_bool_dtype(values)
    numeric = pd.api.types.is_numeric_dtype(values) and not two_state
    first = shown.str.split().str[0]  # some competitions accept several guesses per row, best first
    numbers_shown = bool(pd.to_numeric(first, errors="coerce").notna().all())
    fractions_shown = numbers_shown and bool(shown.str.contains(".", regex=False).any())
    if distinct == 2 and numbers_shown and (fractions_shown or chances):
        explanation = f"{column} has two values, and numbers in the sample submission: predict a probability"
        return Target([column], "probability", truth, explanation)
    if numeric and (distinct > CLASSES or fractions_shown or not (values == values.round()).all()):
        return Target([column], "number", truth, f"{column} has {distinct} numeric values: predict a number")
    if distinct > 0.5 * len(values):
        raise NotUnderstood(f"{column} has a different value in most rows")
    if numbers_shown != numeric and not two_state:
        raise NotUnderstood(
            f"{column} is a number either in the sample submission or in the training data, not in both"
        )
    truth = truth.astype(int) if two_state and numbers_shown else truth
    return Target([column], "label", truth, f"{column} has {distinct} different values: predict one of them")


def fill_in(submission: pd.DataFrame, target: Target, predicted: pd.DataFrame | None) -> None:
    """Write predictions into the submission; rows without one get the mean, frequency, or most common value."""
    values = target.values.dropna()
    for column in target.columns:
        if target.kind == "label":
            default = values.mode().iloc[0]
        elif target.kind == "number":
            default = float(values.mean())
        else:  # every count is increased by one, so that no probability is 0
            count = (values == (column if target.kind == "classes" else values.max())).sum()
            default = (count + 1) / (len(values) + max(len(target.columns), 2))
        name = column if target.kind == "classes" else "prediction"
        if predicted is None or name not in predicted:
            submission[column] = default
        else:
            submission[column] = predicted[name].where(predicted[name].notna(), default).to_numpy()


def balance(submission: pd.DataFrame, sample: pd.DataFrame, targets: list[Target]) -> pd.DataFrame:
    """Make the numbers of every row sum to 1 if they do in the sample submission."""
    columns = [column for target in targets for column in target.columns]
    shown = sample[columns].apply(pd.to_numeric, errors="coerce").sum(axis=1, skipna=False)
    if len(columns) < 2 or not ((shown - 1).abs() < 1e-3).all():
        return submission
    numbers = submission[columns].astype(float).clip(lower=1e-6)
    return submission.assign(**numbers.div(numbers.sum(axis=1), axis=0))
