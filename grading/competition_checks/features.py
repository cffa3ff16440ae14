"""Columns, ids and properties of files that alone tell the answers."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import PurePosixPath
from typing import TYPE_CHECKING

from grading.competition_checks.public_files import PublicFile, test_files
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


def features(measured: Measured) -> list[str]:
    """No column of the test rows alone tells the answers, such as one that was measured after them."""
    tables = _with_answers(measured)
    if tables.test is None or not tables.features:
        raise Skipped("the test rows have no table")
    rows = drawn(tables.test[tables.features[:_MAX_COLUMNS]])
    found = skills(rows, tables.answers.loc[rows.index], measured.groups)
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
    measured.figures["metadata"] = found
    return [
        f"{name} explains {value:.0%} of the variance of the answers"
        for name, value in found.items()
        if value >= MIN_METADATA_SKILL
    ]


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
