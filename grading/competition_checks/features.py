"""Columns, ids and properties of files that alone tell the answers."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import PurePosixPath
from typing import TYPE_CHECKING

from grading.competition_checks.public_files import PublicFile, test_files
from grading.competition_checks.public_tables import is_media
from grading.competition_checks.skill import MIN_ROWS, drawn, skills, targets_of
from grading.competition_checks.subject import Skipped

if TYPE_CHECKING:
    import pandas as pd

    from grading.competition_checks.measured import Measured
    from grading.competition_checks.task_tables import TaskTables

MIN_FEATURE_SKILL = 0.95
"""Share of the variance of the answers from which one column tells them."""
MIN_METADATA_SKILL = 0.2
"""The same for what should tell nothing: ids, the order of rows, and sizes of files."""
_MAX_COLUMNS = 500
_MAX_IMAGES = 500
_MAX_CHARACTERS = 32


def features(measured: Measured) -> list[str]:
    """No column of the test rows alone tells the answers, such as one that was measured after them."""
    if _has_ids_alone(measured):
        measured.figures["features"] = {}
        return ["the test rows have ids alone: no public table or file has features of them, as training rows have"]
    tables = _with_answers(measured)
    answers = drawn(tables.answers)
    rows = _columns(tables, answers.index)
    if rows.empty:
        raise Skipped("the test rows have no table")
    found = skills(rows, answers, measured.groups)
    measured.figures["features"] = dict(list(found.items())[:10])
    return [
        f"column {name} explains {value:.0%} of the variance of the answers alone"
        for name, value in found.items()
        if value >= MIN_FEATURE_SKILL
    ]


def metadata(measured: Measured) -> list[str]:
    """Ids, the order of rows, and sizes and times of files tell nothing about the answers."""
    tables = _with_answers(measured)
    answers = drawn(tables.answers)
    files = test_files(measured.files, tables.answers.index)
    found = skills(_metadata(tables, files).reindex(answers.index), answers, measured.groups)
    characters = skills(_characters(answers.index), answers, measured.groups)
    if characters and (best := next(iter(characters))) and characters[best] > max(found.values()):
        found = {best: characters[best], **found}
    measured.figures["metadata"] = found
    return [
        f"{name} explains {value:.0%} of the variance of the answers"
        for name, value in found.items()
        if value >= MIN_METADATA_SKILL
    ]


def _has_ids_alone(measured: Measured) -> bool:
    """Whether a public table has the test ids, none has a feature of them, and training rows have some."""
    tables = measured.tables
    known = [table for table in (tables.test, *tables.others.values()) if table is not None]
    if not known or any(name not in tables.answers for table in known for name in table):
        return False
    shown = bool(measured.subject.not_covered["features"]) or any(is_media(file.name) for file in measured.files)
    return tables.more_of_training and not shown


def _columns(tables: TaskTables, ids: pd.Index) -> pd.DataFrame:
    """The columns of the table of test rows, and of other public tables that have most of their ids."""
    import pandas as pd

    columns = {} if tables.test is None else {name: tables.test[name] for name in tables.features}
    columns |= {f"{name} of {path}": table[name] for path, table in tables.others.items() for name in table}
    return pd.DataFrame({name: column.reindex(ids) for name, column in list(columns.items())[:_MAX_COLUMNS]}, ids)


def _with_answers(measured: Measured) -> TaskTables:
    tables = measured.tables
    if len(tables.answers) < MIN_ROWS:
        raise Skipped(f"the test set has only {len(tables.answers)} rows")
    if targets_of(tables.answers) is None:
        raise Skipped("the answers are neither numbers nor classes")
    return tables


def _metadata(tables: TaskTables, files: dict[str, PublicFile]) -> pd.DataFrame:
    """What is known of each test row without its content; one row for each id."""
    import pandas as pd

    ids = pd.Series(tables.answers.index.astype(str), index=tables.answers.index)
    columns: dict[str, pd.Series] = {
        "the row number in the sample submission": pd.Series(range(len(ids)), index=ids.index),
        "the number in the id": pd.to_numeric(ids.str.extract(r"(\d{1,15})(?!.*\d)", expand=False), errors="coerce"),
        "the order of the ids": ids.rank(),
        "the id without digits": ids.str.replace(r"\d", "", regex=True),
    }
    if tables.test is not None:
        columns["the row number in the test table"] = pd.Series(range(len(tables.test)), index=tables.test.index)
    if len(files) > len(ids) / 2:
        some = dict(list(files.items())[:_MAX_IMAGES])
        columns |= {f"the {what} of the file": pd.Series({i: get(files[i]) for i in files}) for what, get in _OF_FILES}
        columns["the width and height of the image"] = pd.Series({i: _pixels(some[i]) for i in some}, dtype=float)
    return pd.DataFrame({name: column.reindex(ids.index) for name, column in columns.items()})


def _characters(ids: pd.Index) -> pd.DataFrame:
    """Each character of the ids, counted from the start, and from the end where their lengths differ."""
    import pandas as pd

    texts = pd.Series(ids.astype(str), index=ids)
    length = min(int(texts.str.len().max()), _MAX_CHARACTERS)
    columns = {f"character {place + 1} of the id": texts.str[place] for place in range(length)}
    if texts.str.len().nunique() > 1:
        columns |= {f"character {place} from the end of the id": texts.str[-place] for place in range(1, length + 1)}
    return pd.DataFrame({name: column for name, column in columns.items() if column.nunique() > 1}, ids)


def _pixels(file: PublicFile) -> float:
    """Width of an image, and as decimals its height; NaN if it is none."""
    shape = file.shape()
    return float("nan") if shape is None else shape[0] + shape[1] / 1e6


_OF_FILES: tuple[tuple[str, Callable[[PublicFile], float | str]], ...] = (
    ("size", lambda file: file.size),
    ("time", lambda file: file.changed),
    ("folder", lambda file: PurePosixPath(file.name).parent.as_posix()),
    ("place in the archive", lambda file: file.place),
)
