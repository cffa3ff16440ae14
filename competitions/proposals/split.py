"""How the new test set is held out: its size, the unit that stays whole, and time."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from competitions.proposals.findings import Finding

if TYPE_CHECKING:
    import pandas as pd

    from competitions.proposals.columns import Columns, Labels

PAPER_SHARE = 0.1
_PLACEHOLDER_ROWS = 100  # test sets of code competitions have a few rows, and the others are hidden
_MIN_FEATURES, _LONG_TEXT = 5, 40  # columns, or characters of a text, from which on equal rows are no chance
_MOST_EQUAL = 0.01
_MIN_EXPECTED = 5.0  # units that a random draw would have put in both parts
_UNIT = re.compile(
    r"(?:^|_)(?:\w*_?id|group|cluster|play|location|site|session|seq)\Z|[a-z](?:Id|ID|UID)\Z", re.IGNORECASE
)
_PERSON = re.compile(r"patient|subject|speaker|author|customer|user|study|breath|play|location|molecule", re.IGNORECASE)
_TIME = re.compile(r"date|time|timestamp|year|month", re.IGNORECASE)


@dataclass(frozen=True)
class Split:
    """How rows are drawn. `column` is that of units or of time; `prefix` is what ends the unit in its cells."""

    by: Literal["rows", "units", "time"]
    share: float
    column: str = ""
    prefix: str = ""

    @property
    def words(self) -> str:
        """For the field `holdout` of competition.yaml."""
        if self.by == "time":
            return f"the last {self.share:.0%} of the rows by {self.column}"
        what = f"values of {self.column}" if self.by == "units" else "rows"
        unit = f" (as far as {self.prefix!r})" if self.prefix else ""
        return f"random {self.share:.0%} of the {what}{unit}, seed 0"


def split_of(columns: Columns, only_tables: bool) -> Finding[Split]:
    """The split that is as Kaggle's, as far as the tables tell; with `only_tables` rows have no files besides."""
    labels = columns.labels.value
    if labels is None:
        return Finding(Split("rows", PAPER_SHARE), "there is no table to split", False)
    share = _share(columns)
    train = labels.table.rows
    test = columns.test.rows if columns.test is not None else None
    if test is not None and (time := _by_time(train, test)):
        return Finding(Split("time", share, time), f"on Kaggle, all test rows are later by {time}", True)
    if labels.ids in train and train[labels.ids].duplicated().any() and labels.ids == columns.ids.value[0]:
        reason = f"{labels.ids} has several rows in {labels.table.name}: say which row of each is the answer"
        return Finding(Split("units", share, labels.ids), reason, False)
    found = _units(columns, labels, train, test, share)
    if only_tables and found.value.by == "rows" and (equal := _equal_rows(train, labels)):
        reason = f"{equal:.0%} of the rows equal others but for {labels.ids} and the targets: keep them together?"
        return Finding(found.value, reason, False)
    return found


def _equal_rows(train: pd.DataFrame, labels: Labels) -> float:
    """The share of rows with the same features as an earlier one, if features tell rows apart at all; else 0."""
    features = [name for name in train.columns if name != labels.ids and name not in labels.source]
    if len(features) < _MIN_FEATURES and not any(
        train[name].dtype == object and train[name].astype(str).str.len().mean() > _LONG_TEXT for name in features
    ):
        return 0.0
    share = float(train.duplicated(features).mean())
    return share if share > _MOST_EQUAL else 0.0


def _share(columns: Columns) -> float:
    """10 %, as in the paper; Kaggle's own share where that is smaller, and not that of a placeholder."""
    sample, labels = columns.sample.value, columns.labels.value
    if sample is None or labels is None:
        return PAPER_SHARE
    theirs = sample.count / (sample.count + labels.table.count)
    return round(theirs, 3) if sample.count > _PLACEHOLDER_ROWS and theirs < PAPER_SHARE else PAPER_SHARE


def _by_time(train: pd.DataFrame, test: pd.DataFrame) -> str | None:
    for name in train.columns:
        if name in test.columns and _TIME.search(str(name)) and len(test) > 1:
            try:
                first, last = test[name].dropna().min(), train[name].dropna().max()
                if train[name].nunique() > 1 and first >= last:
                    return str(name)
            except TypeError:  # texts and numbers
                continue
    return None


def _units(
    columns: Columns, labels: Labels, train: pd.DataFrame, test: pd.DataFrame | None, share: float
) -> Finding[Split]:
    random = Finding(Split("rows", share), "no column names a unit with several rows", True)
    for name in map(str, train.columns):
        if name in labels.source or name == labels.ids or not _UNIT.search(name):
            continue
        size = len(train) / max(1, train[name].nunique())
        if size < 1.2 or train[name].nunique() < 10:
            continue
        if test is not None and name not in test.columns:
            continue
        if test is not None:
            repeated = train[name].value_counts()
            expected = len(test) * float((repeated[repeated > 1].sum()) / len(train))
            shared = int(test[name].isin(train[name]).sum())
            if shared == 0 and expected >= _MIN_EXPECTED:
                return Finding(Split("units", share, name), f"on Kaggle, no {name} is in both parts", True)
            if shared:
                continue
        if _PERSON.search(name):
            reason = f"{name} has {size:.1f} rows each; whether Kaggle keeps them together is not known"
            return Finding(Split("units", share, name), reason, False)
    return _prefixed(labels, train, share) or random


def _prefixed(labels: Labels, train: pd.DataFrame, share: float) -> Finding[Split] | None:
    """Ids such as `0013_01`, whose first part is shared by several rows."""
    if labels.ids not in train:
        return None
    ids = train[labels.ids].dropna().astype(str)
    for separator in ("_", "-"):
        first = ids.str.partition(separator)[0]
        if ids.str.count(separator).eq(1).all() and len(ids) >= 1.2 * first.nunique() and first.nunique() >= 10:
            reason = f"{labels.ids} has a first part that several rows share; is it a unit?"
            return Finding(Split("units", share, labels.ids, separator), reason, False)
    return None
