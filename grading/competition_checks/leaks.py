"""Answers in public tables: under any column name, by the ids of the test set or by the order of its rows."""

from __future__ import annotations

import io
import re
import zipfile
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path, PurePosixPath
from typing import IO, TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pandas as pd

_TABLES = {".csv": ",", ".tsv": "\t"}
_MAX_TABLE_BYTES = 256 << 20
"""Bytes of a table that are read; the rows after them are not looked at."""
_EQUAL = 0.95
"""Share of equal cells from which a column is taken for the answers. Some noise does not make a leak harmless."""
_MIN_ANSWERS = 10
"""Rows from which equal cells are no chance."""
_GIVES_AWAY = re.compile(r"answers?|solutions?|gold|ground[_-]?truth|test[_-]?(?:labels?|targets?|answers?)", re.I)
_HARMLESS = re.compile(r"train|sample", re.I)
"""In the path of training data and of sample submissions, where values of an answer column are expected."""


@dataclass(frozen=True)
class Answers:
    """The answers of a test set as texts: one column for each that a submission has to predict, by id."""

    id_name: str
    table: pd.DataFrame
    """Index: ids. Columns: answers."""


def answers_of(gold: bytes, sample: bytes) -> Answers | None:
    """The answers in a gold submission: the columns whose values are not those of the sample submission.

    None if there is no column of ids, or if ids are repeated.
    """
    best, given = _read(gold, ","), _read(sample, ",")
    if best is None or given is None or best.empty or list(best.columns) != list(given.columns):
        return None
    id_name = str(best.columns[0])
    if not best[id_name].is_unique or set(best[id_name]) != set(given[id_name]):
        return None
    best, given = best.set_index(id_name), given.set_index(id_name).loc[best[id_name]]
    # One value for all rows is equal to any constant column.
    predicted = [name for name in best if (best[name] != given[name]).any() and best[name].nunique() > 1]
    return Answers(id_name, best[predicted]) if predicted else None


def public_tables(folder: Path, leave_out: str) -> Iterator[tuple[str, pd.DataFrame]]:
    """The tables below a folder, also those in zip archives, as texts, by their paths.

    Args:
        folder: The public files.
        leave_out: Name of the sample submission.
    """
    for path in sorted(path for path in folder.rglob("*") if path.is_file()):
        name = path.relative_to(folder).as_posix()
        if path.suffix == ".zip" and zipfile.is_zipfile(path):
            with zipfile.ZipFile(path) as archive:
                for info in archive.infolist():
                    if not PurePosixPath(info.filename).name.startswith(("._", leave_out)):
                        yield from _table(f"{name}/{info.filename}", partial(archive.open, info))
        elif path.name != leave_out:
            yield from _table(name, partial(_binary, path))


def names_that_give_away(paths: Iterable[str]) -> list[str]:
    """The paths whose file is named like one with answers of the test set.

    >>> names_that_give_away(["train.csv", "test_labels.csv", "a/solution.tsv", "train/7/ground_truth.csv"])
    ['test_labels.csv', 'a/solution.tsv']
    """
    named = [path for path in paths if _GIVES_AWAY.fullmatch(PurePosixPath(path).name.split(".")[0])]
    return [path for path in named if not _HARMLESS.search(path)]


def leaks(name: str, table: pd.DataFrame, answers: Answers) -> Iterator[str]:
    """What a public table gives away, one line for each column."""
    wanted = answers.table.index
    keys = [column for column in table if table[column].isin(wanted).mean() > 0 and _has_ids(table[column], wanted)]
    for key in keys:
        rows = table[table[key].isin(wanted)].drop_duplicates(key).set_index(key)
        yield from _compare(name, rows, answers.table.loc[rows.index], f"by {key}")
        if key != answers.id_name or _HARMLESS.search(name) or table[key].isin(wanted).mean() < _EQUAL:
            continue  # ids of training rows may be the same numbers
        named = [column for column in answers.table if column in rows and (rows[column].str.strip() != "").any()]
        for column in named:
            if rows[column].nunique() > 1:
                yield f"public/{name} has values in the answer column {column} for ids of the test set"
    if not keys and len(table) == len(wanted):
        yield from _compare(name, table, answers.table, "row by row")


def _compare(name: str, rows: pd.DataFrame, answers: pd.DataFrame, how: str) -> Iterator[str]:
    if len(rows) < _MIN_ANSWERS:
        return
    for wanted in answers:
        truth = answers[wanted]
        if truth.nunique() < 2:
            continue
        commonest = truth.value_counts(normalize=True).iloc[0]
        for column in rows:
            share = _equal(rows[column].to_numpy(), truth.to_numpy())
            # Above what one constant value would reach.
            if share >= _EQUAL and share > commonest + (1 - commonest) / 2:
                yield f"public/{name} has the answers {wanted} in its column {column} ({how}, {share:.0%} are equal)"


def _equal(left: Any, right: Any) -> float:
    import numpy as np
    import pandas as pd

    one, two = pd.Series(left, dtype=str), pd.Series(right, dtype=str)
    same = one == two
    numbers = pd.to_numeric(one, errors="coerce"), pd.to_numeric(two, errors="coerce")
    return float((same | np.isclose(*numbers, rtol=1e-9, atol=0)).mean())


def _has_ids(column: pd.Series, ids: pd.Index) -> bool:
    """Whether a column has most ids of the test set; a few numbers are in many columns by chance."""
    return ids.isin(column).mean() > 0.5


def _table(name: str, opened: Callable[[], IO[bytes]]) -> Iterator[tuple[str, pd.DataFrame]]:
    separator = _TABLES.get(PurePosixPath(name).suffix)
    rows = _read(_head(opened()), separator) if separator else None
    if rows is not None:
        yield name, rows


def _binary(path: Path) -> IO[bytes]:
    return path.open("rb")


def _head(file: IO[bytes]) -> bytes:
    with file:
        content = file.read(_MAX_TABLE_BYTES)
    return content if len(content) < _MAX_TABLE_BYTES else content[: content.rfind(b"\n")]


def _read(content: bytes, separator: str) -> pd.DataFrame | None:
    """A table with all cells as texts; None if it is none."""
    import pandas as pd

    try:
        return pd.read_csv(io.BytesIO(content), sep=separator, dtype=str, keep_default_na=False, on_bad_lines="skip")
    except (ValueError, UnicodeDecodeError, pd.errors.ParserError):
        return None
