"""How the new test set is held out: its size, the unit that stays whole, and time."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from competitions.preparing.holdout import hold_out_last, in_order
from competitions.proposals.findings import Finding
from competitions.proposals.texts import TIME, UNIT

if TYPE_CHECKING:
    import pandas as pd

    from competitions.proposals.columns import Columns, Labels

PAPER_SHARE = 0.1
_PLACEHOLDER_ROWS = 100  # test sets of code competitions have a few rows, and the others are hidden
_MIN_FEATURES, _LONG_TEXT = 5, 40  # columns, or characters of a text, from which on equal rows are no chance
_MOST_EQUAL = 0.01
_MIN_EXPECTED = 5.0  # units that a random draw would have put in both parts
_MIN_ROWS = 1.2  # rows of a unit on average
_MOST_DATES = 0.5  # of the cells of a column of texts, from which on it is one of dates
_MIN_UNITS = 10  # from which on a tenth of them can be drawn, and ids have a first part by more than chance


@dataclass(frozen=True)
class Split:
    """How rows are drawn. `column` is that of units or of time; `pattern` finds the unit in its cells."""

    by: Literal["rows", "units", "time"]
    share: float
    column: str = ""
    pattern: str = ""

    @property
    def words(self) -> str:
        """For the field `holdout` of competition.yaml."""
        if self.by == "time":
            return f"the last {self.share:.0%} of the rows by {self.column}"
        what = f"values of {self.column}" if self.by == "units" else "rows"
        unit = f", of which {self.pattern} finds the unit" if self.pattern else ""
        return f"random {self.share:.0%} of the {what}{unit}, seed 0"


def split_of(columns: Columns, only_tables: bool) -> Finding[Split]:
    """The split that is as Kaggle's, as far as the tables tell; with `only_tables` rows have no files besides."""
    labels = columns.labels.value
    if labels is None:
        return Finding(Split("rows", PAPER_SHARE), "there is no table to split", False)
    share = _share(columns)
    train = labels.table.rows
    test = columns.test.rows if columns.test is not None else None
    own = {labels.ids, *labels.source}
    if test is not None and (found := _by_time(train, test, own, share)):
        return found
    if labels.ids in train and train[labels.ids].duplicated().any() and labels.ids == columns.ids.value[0]:
        reason = f"{labels.ids} has several rows in {labels.table.name}: say which row of each is the answer"
        return Finding(Split("units", share, labels.ids), reason, False)
    found = _units(columns, labels, share)
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


def _by_time(train: pd.DataFrame, test: pd.DataFrame, own: set[str], share: float) -> Finding[Split] | None:
    """The column by which all of Kaggle's test rows are later: dates, or numbers that are named as times are."""
    for name in map(str, train.columns):
        if name not in test.columns or train[name].nunique() < 2 or len(test) < 2:
            continue
        dates = train[name].dtype == object
        if not dates and (name in own or not TIME.search(name)):
            continue
        first, last = in_order(test[name]), in_order(train[name])
        if (first.dtype.kind == "M") != (last.dtype.kind == "M") or last.notna().mean() < _MOST_DATES:
            continue
        if not first.min() >= last.max():
            continue
        found = Split("time", share, name)
        try:
            held_out = hold_out_last(train, name, share)[1]
        except ValueError as error:
            return Finding(found, str(error), False)
        if not share / 1.5 <= len(held_out) / len(train) <= share * 1.5:
            return Finding(found, f"the rows with the last {name} are {len(held_out)} of {len(train)}", False)
        return Finding(found, f"on Kaggle, all test rows are later by {name}", True)
    return None


def _is_placeholder(test: int, train: int) -> bool:
    """Whether a test set is too small to tell how Kaggle drew it."""
    return test <= _PLACEHOLDER_ROWS and test < PAPER_SHARE * train


def _units(columns: Columns, labels: Labels, share: float) -> Finding[Split]:
    """What stays whole: what on Kaggle is never in both parts; by its name alone if Kaggle's parts do not tell."""
    train = labels.table.rows
    test = columns.test.rows if columns.test is not None else None
    evident: list[str] = []
    named: list[str] = []
    alike: list[str] = []
    for name in map(str, train.columns):
        repeated = train[name].nunique() > 1 and train[name].count() >= _MIN_ROWS * train[name].nunique()
        if name in labels.source or name == labels.ids or not repeated or train[name].dtype.kind in "fb":
            continue
        known = test is not None and name in test.columns
        together = _together(train[name], test[name]) if test is not None and known else None
        if together:
            evident.append(name)
        elif together is None and UNIT.search(name):
            named.append(name)
        elif together is None and train[name].dtype == object and train[name].nunique() >= len(train) / 50 >= 1:
            alike.append(name)
    if evident:
        name = min(evident, key=lambda name: train[name].nunique())
        few = train[name].nunique() < _MIN_UNITS
        assert test is not None
        later = train[name].dtype.kind == "i" and test[name].dtype.kind == "i" and test[name].min() > train[name].max()
        doubt = f", of which there are {train[name].nunique()}" if few else ""
        doubt = ", and those of test rows are higher: is it a time?" if later and not UNIT.search(name) else doubt
        return Finding(Split("units", share, name), f"on Kaggle, no {name} is in both parts{doubt}", not doubt)
    if named:
        size = train[named[0]].count() / train[named[0]].nunique()
        reason = f"{named[0]} has {size:.1f} rows each; whether Kaggle keeps them together is not known"
        return Finding(Split("units", share, named[0]), reason, False)
    if prefixed := _prefixed(columns, labels, share):
        return prefixed
    if alike:
        reason = f"whether Kaggle keeps rows of the same {', '.join(alike[:4])} together is not known"
        return Finding(Split("rows", share), reason, False)
    return Finding(Split("rows", share), "no column names a unit with several rows", True)


def _together(train: pd.Series, test: pd.Series) -> bool | None:
    """Whether on Kaggle equal values are in one part only; None if its test set is too small to tell."""
    repeated = train.value_counts()
    expected = len(test) * float(repeated[repeated > 1].sum() / len(train))
    if test.isin(train.dropna()).any():
        return None if _is_placeholder(len(test), len(train)) else False
    return True if expected >= _MIN_EXPECTED else None


def _prefixed(columns: Columns, labels: Labels, share: float) -> Finding[Split] | None:
    """Ids such as `0013_01`, whose first part is shared by several rows."""
    if labels.ids not in labels.table.rows:
        return None
    ids = labels.table.rows[labels.ids].dropna().astype(str)
    sample = columns.sample.value
    theirs = sample.rows[columns.ids.value[0]].dropna().astype(str) if sample is not None else None
    for separator in sorted(set(re.findall(r"[^A-Za-z0-9]", ids.iloc[0] if len(ids) else ""))):
        for pattern in (f"^(.*?){re.escape(separator)}", f"^(.*){re.escape(separator)}"):
            first = ids.str.extract(pattern, expand=False)
            if first.isna().any() or first.nunique() < 2 or len(ids) < _MIN_ROWS * first.nunique():
                continue
            found = Split("units", share, labels.ids, pattern)
            together = None if theirs is None else _together(first, theirs.str.extract(pattern, expand=False))
            if together:
                return Finding(found, f"on Kaggle, no first part of {labels.ids} is in both parts", True)
            if together is None and first.nunique() >= _MIN_UNITS:
                return Finding(found, f"{labels.ids} has a first part that several rows share; is it a unit?", False)
    return None
