"""The sample submission, the table with the labels, and their columns."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass, replace
from pathlib import PurePosixPath
from typing import Literal

from competitions.proposals.findings import Finding
from competitions.proposals.layout import Layout, Table, part_of

_SAMPLE = re.compile(r"sample.*sub|submission|^random_?pred", re.IGNORECASE)
_MIN_ROWS = 10
_SEPARATORS = (",", ";", "|", " ")

Form = Literal["columns", "one-hot", "lists"]


@dataclass(frozen=True)
class Labels:
    """Where the right answers of the training data are.

    `form` says how the answers are made of `table`: "columns" has a column `source[i]` for each `targets[i]`;
    "one-hot": the cells of `source` are names of targets; "lists": they are several names, with a `separator`.
    """

    table: Table
    ids: str
    form: Form
    source: tuple[str, ...]
    separator: str = ""

    @property
    def of_folders(self) -> bool:
        """Whether the table is made of the names of files in folders, which are the classes."""
        return self.table.form == "folders"


@dataclass(frozen=True)
class Columns:
    """The tables of a competition, and the columns that are submitted."""

    sample: Finding[Table | None]
    test: Table | None
    ids: Finding[tuple[str, ...]]
    targets: tuple[str, ...]
    labels: Finding[Labels | None]


def find_columns(layout: Layout) -> Columns:
    """Find them by the names of tables and columns, and by the cells."""
    sample = _sample(layout)
    if sample.value is None:
        return _without_sample(layout, sample)
    ids = _ids(sample.value)
    targets = tuple(name for name in sample.value.columns if name not in ids.value)
    others = [table for table in layout.tables if not _SAMPLE.search(table.base)]
    test = _test(others, ids.value)
    labels = _labels(layout, others, test, ids.value, targets)
    if test is not None and labels.value is not None and labels.value.form != "columns":
        test = None if set(labels.value.source) <= {*test.columns} else test  # Kaggle has published its answers
    return Columns(sample, test, ids, targets, labels)


def _without_sample(layout: Layout, sample: Finding[Table | None]) -> Columns:
    """Targets are then the columns that the test data lack."""
    trains = [table for table in layout.tables if table.part == "train"]
    for train in trains:
        for test in layout.tables:
            missing = [name for name in train.columns if name not in test.columns]
            known = [name for name in train.columns if name in test.columns and not test.rows[name].duplicated().any()]
            if test.part == "test" and len(missing) == 1 and known:
                ids: Finding[tuple[str, ...]] = Finding((known[0],), sample.reason, False)
                labels = Labels(train, known[0], "columns", (missing[0],))
                reason = f"{missing[0]} is the only column that {test.name} lacks"
                return Columns(sample, test, ids, (missing[0],), Finding(labels, reason, True))
    return Columns(sample, None, Finding((), sample.reason, False), (), Finding(None, sample.reason, False))


def _sample(layout: Layout) -> Finding[Table | None]:
    found = [table for table in layout.tables if _SAMPLE.search(table.base) and len(table.columns) > 1]
    found.sort(key=lambda table: ("sample" not in table.base, len(table.name), table.name))
    if not found:
        reason = f"the download has no sample submission{layout.unread}: state which columns are submitted"
        return Finding(None, reason, False)
    if len({tuple(table.columns) for table in found}) > 1:
        return Finding(found[0], f"{found[0].name} is one of {len(found)} sample submissions with other columns", False)
    return Finding(found[0], "by its name", True)


def _ids(sample: Table) -> Finding[tuple[str, ...]]:
    """The first columns that identify the rows of the sample submission."""
    names = sample.columns
    for count in range(1, len(names)):
        if not sample.rows.duplicated(names[:count]).any():
            enough = len(sample.rows) > 1
            few = "" if enough else f"; the sample submission has {len(sample.rows)} rows"
            return Finding(tuple(names[:count]), f"{', '.join(names[:count])} tells the rows apart{few}", count == 1)
    return Finding((names[0],), "the sample submission repeats rows: state which columns identify them", False)


def _test(tables: list[Table], ids: tuple[str, ...]) -> Table | None:
    """The table with the features of test rows, which is not one of their labels."""
    found = [table for table in tables if table.part == "test" and "label" not in table.base and like(table, ids[0])]
    return min(found, key=lambda table: (table.path.count("/"), len(table.base), table.name), default=None)


def _labels(
    layout: Layout, tables: list[Table], test: Table | None, ids: tuple[str, ...], targets: tuple[str, ...]
) -> Finding[Labels | None]:
    candidates = [table for table in tables if table is not test and len(table.rows) and table.part != "test"]
    candidates.sort(key=lambda table: (table.part != "train", -len(table.columns), len(table.name)))
    candidates += _folders(layout, ids, targets)
    for find in (_same_columns, _class_columns, _renamed):
        for number, table in enumerate(candidates, 1):
            found = find(table, test, ids, targets)
            if found is None:
                continue
            if table.count < _MIN_ROWS:
                doubt = f"{table.name} has {table.count} rows only: is it the table of the labels?"
                return replace(found, reason=doubt, sure=False)
            for other in candidates[number:]:
                alike = find(other, test, ids, targets)
                if alike is not None and alike.sure and _beside(other, table) and not other.rows.equals(table.rows):
                    doubt = f"{other.name} could be the table of the labels as well"
                    return replace(found, reason=doubt, sure=False)
            return found
    wanted = ", ".join([*ids, *targets][:5])
    reason = f"no table has the answers in columns {wanted}{layout.unread}: read or make the table of the labels"
    return Finding(None, reason, False)


def _beside(other: Table, table: Table) -> bool:
    """Whether a table is in the same folder as another, and is as much one of training rows by its name."""
    named = (other.part == "train") >= (table.part == "train")
    return named and PurePosixPath(other.path).parent == PurePosixPath(table.path).parent


def _folders(layout: Layout, ids: tuple[str, ...], targets: tuple[str, ...]) -> list[Table]:
    """A table of the files in folders named after classes, such as `train/cat/1.jpg`, if there are such."""
    import pandas as pd

    if len(targets) != 1:
        return []
    for archive, names in layout.files.items():
        paths = [
            path for name in names if part_of((path := PurePosixPath(name)).parts[0]) == "train" and len(path.parts) > 2
        ]
        by_top = Counter((path.parent.parent, path.suffix) for path in paths)
        (top, suffix), count = max(by_top.items(), key=lambda item: item[1], default=((None, ""), 0))
        rows = [(path.name, path.parent.name) for path in paths if (path.parent.parent, path.suffix) == (top, suffix)]
        unlike = len({file for file, _ in rows}) > 0.9 * count  # else they are parts of what the folder is named after
        if unlike and 2 <= len({label for _, label in rows}) <= count / 2:
            table = pd.DataFrame(rows, columns=[ids[0], targets[0]])
            return [Table(f"{top}/*/*{suffix}", archive, table, count, "folders")]
    return []


def _same_columns(
    table: Table, test: Table | None, ids: tuple[str, ...], targets: tuple[str, ...]
) -> Finding[Labels | None] | None:
    if not set(targets) <= {*table.columns}:
        return None
    if known := [name for name in targets if test is not None and name in test.columns]:
        reason = f"{known[0]} is in {test.name if test else ''} as well: what is predicted?"
        return Finding(Labels(table, like(table, ids[0]) or table.columns[0], "columns", targets), reason, False)
    if ids[0] in table.columns:
        return Finding(Labels(table, ids[0], "columns", targets), f"{table.name} has all submitted columns", True)
    own = like(table, ids[0]) or table.columns[0]
    reason = f"{table.name} has the targets, but no column {ids[0]}: say how it is made of the others"
    return Finding(Labels(table, own, "columns", targets), reason, False)


def _class_columns(
    table: Table, test: Table | None, ids: tuple[str, ...], targets: tuple[str, ...]
) -> Finding[Labels | None] | None:
    """A column of class names, where submissions have a column for each class."""
    own = like(table, ids[0])
    if own is None or len(targets) < 2:
        return None
    for name in table.columns:
        cells = table.rows[name].dropna().astype(str)
        if name == own or cells.empty:
            continue
        if set(cells) <= set(targets):
            reason = f"the cells of {name} are the names of the submitted columns"
            return Finding(Labels(table, own, "one-hot", (name,)), reason, True)
        for separator in _SEPARATORS:
            if {part for cell in cells.head(1000) for part in cell.split(separator)} <= set(targets):
                reason = f"the cells of {name} are lists of the submitted columns"
                return Finding(Labels(table, own, "lists", (name,), separator), reason, True)
    return None


def _renamed(
    table: Table, test: Table | None, ids: tuple[str, ...], targets: tuple[str, ...]
) -> Finding[Labels | None] | None:
    """One submitted column that has another name in the training data."""
    own = like(table, ids[0])
    if own is None or len(targets) != 1:
        return None
    known = set(test.columns) if test is not None else set()
    unknown = [name for name in table.columns if name != own and name not in known]
    if table.label in unknown:
        unknown = [table.label]
    alike = [name for name in unknown if _plain(targets[0]) in _plain(name) or _plain(name) in _plain(targets[0])]
    if len(unknown) == 1:
        why = "is the only column that the test data lack" if known else "is the only other column"
        why = "is the label of images" if table.label else why
        return Finding(Labels(table, own, "columns", (unknown[0],)), f"{unknown[0]} of {table.name} {why}", True)
    if not unknown:
        return None
    source = (alike or unknown)[0]
    reason = f"{targets[0]} may be {source} of {table.name}, which has {', '.join(unknown[:4])}"
    return Finding(Labels(table, own, "columns", (source,)), reason, False)


def like(table: Table, name: str) -> str | None:
    """The column with this name, whatever its case."""
    return name if name in table.columns else next((own for own in table.columns if _plain(own) == _plain(name)), None)


def _plain(name: str) -> str:
    return re.sub(r"[^a-z0-9]", "", name.lower())
