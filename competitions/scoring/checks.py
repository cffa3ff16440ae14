"""Checks of a submission's columns, rows and ids.

Every check raises `InvalidSubmission` with a one-line message for the agent. Checks may use the ids of the answers,
which are public because the test set lists them, but not the other columns. `competitions.scoring.cells` checks the
content of cells.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from competitions.scoring.errors import InvalidSubmission
from competitions.scoring.matching import are_alike, ascending, plain, positions
from competitions.tables.arrays import MANY

_MIN_COLUMNWISE_ROWS = 10_000  # with fewer rows, the cost of each column dominates


def require_columns(submission: pd.DataFrame, *columns: str) -> None:
    """Require that all `columns` exist. Other columns are ignored."""
    missing = [name for name in columns if name not in submission.columns]
    if missing:
        raise InvalidSubmission(f"The submission lacks {_names(missing)}; it has {_names(submission.columns)}.")


def require_exact_columns(submission: pd.DataFrame, columns: Iterable[str], *, ordered: bool = False) -> None:
    """Require exactly these columns, in this order if `ordered`."""
    required = list(columns)
    require_columns(submission, *required)
    required_set = set(required)
    extra = [name for name in submission.columns if name not in required_set]
    if extra:
        raise InvalidSubmission(f"The submission must not have {_names(extra)}, only {_names(required)}.")
    if ordered and list(submission.columns) != required:
        raise InvalidSubmission(f"The columns must be in the order of the sample submission: {_names(required)}.")


def require_rows(submission: pd.DataFrame, count: int) -> None:
    """Require `count` rows."""
    if len(submission) != count:
        raise InvalidSubmission(f"The submission has {len(submission)} rows; {count} are expected.")


def require_same_ids(submission: pd.DataFrame, answers: pd.DataFrame, on: str) -> None:
    """Require that the sets of ids are equal, without missing or unknown ids. Repeated ids are accepted."""
    require_columns(submission, on)
    submission, answers = plain(submission[[on]]), plain(answers[[on]])
    if set(submission[on].unique()) != set(answers[on].unique()):
        raise InvalidSubmission(_difference(submission[on], answers[on]))


def sort_by(submission: pd.DataFrame, on: str) -> pd.DataFrame:
    """The rows sorted by the column `on`, with a new index. Rejects ids of types that cannot be compared."""
    require_columns(submission, on)
    try:
        return _rows(submission, _order(submission, on))
    except TypeError as error:
        raise InvalidSubmission(f"`{on}` mixes text and numbers; copy the ids of the sample submission.") from error


def align(
    submission: pd.DataFrame, answers: pd.DataFrame, on: str, columns: Sequence[str] = ()
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Submission and answers, both sorted by the id column `on`, so that their rows have the same ids.

    Rejects missing columns (`on`, `columns`), a different number of rows, and ids that are unknown, missing, empty or
    repeated (unless they are so in the answers). Numbers are compared by value: `3.0` equals `3`, the text `"3"` does
    not. The frames may share columns with the arguments: callers may add columns, but must not write into them.
    """
    require_columns(submission, on, *columns)
    require_rows(submission, len(answers))
    answers = _numbered(answers) if is_ascending(answers[on]) else _rows(answers, _order(answers, on))
    rows = positions(submission[on], answers[on])
    if rows is not None:
        return _take(submission, rows, on, answers), answers
    submission, answers = sort_by(plain(submission), on), plain(answers)
    if (submission[on].to_numpy() != answers[on].to_numpy()).any():
        raise InvalidSubmission(_difference(submission[on], answers[on]))
    return submission, answers


def match(
    submission: pd.DataFrame, answers: pd.DataFrame, on: str, columns: Sequence[str] = ()
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Like `align`, but in the order of the answers (unless ids repeat), so that millions of rows need no sorting."""
    submission, answers, rows = locate(submission, answers, on, columns)
    return submission if rows is None else _take(submission, rows, on, answers), answers


def locate(
    submission: pd.DataFrame, answers: pd.DataFrame, on: str, columns: Sequence[str] = ()
) -> tuple[pd.DataFrame, pd.DataFrame, NDArray[np.intp] | None]:
    """Like `match`, but the submission keeps its order: for each answer, the position of its row is returned, too.

    None in place of positions means that the rows have the order of the answers. A metric that takes positions needs
    no copy of large texts in another order.
    """
    require_columns(submission, on, *columns)
    require_rows(submission, len(answers))
    if are_alike(submission[on], answers[on]):
        return _numbered(submission), _numbered(answers), None
    rows = positions(submission[on], answers[on])
    if rows is None:
        return *align(submission, answers, on, columns), None
    return submission, _numbered(answers), rows


def align_repeated(
    submission: pd.DataFrame, answers: pd.DataFrame, on: str, columns: Sequence[str]
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Like `align`, but in the order of the answers, and an id counts as often as the submission repeats it."""
    require_columns(submission, on, *columns)
    submission = pd.DataFrame({name: submission[name] for name in [on, *columns]}, copy=False)
    if len(submission) == len(answers):
        rows_of_ids = positions(submission[on], answers[on])
        if rows_of_ids is not None:
            return _take(submission, rows_of_ids, on, answers), _numbered(answers)
    submission, answers = plain(submission), plain(answers)
    require_same_ids(submission, answers, on)
    rows = pd.DataFrame({on: answers[on].to_numpy(), "": range(len(answers))})
    pairs = rows.merge(submission, on=on, how="inner")
    return pairs.drop(columns=""), answers.iloc[pairs[""].to_numpy()].reset_index(drop=True)


def select(frame: pd.DataFrame, wanted: pd.Series) -> pd.DataFrame:
    """The rows where the boolean column `wanted` is true, with a new index. Arrow columns are filtered by Arrow."""
    mask = wanted.to_numpy(dtype=bool)
    columns = {}
    for name, values in frame.items():
        if isinstance(values.dtype, pd.ArrowDtype):
            columns[name] = pd.Series(type(values.array)(values.array.__arrow_array__().filter(mask)))
        else:
            columns[name] = pd.Series(values.to_numpy()[mask])
    return pd.DataFrame(columns, columns=frame.columns)


def is_ascending(ids: pd.Series) -> bool:
    """Whether each id is greater than the one before. Most answers are ascending, so they need not be sorted."""
    if isinstance(ids.dtype, pd.ArrowDtype):
        import pyarrow.compute as pc

        column = ids.array.__arrow_array__()
        return pc.all(pc.greater(column[1:], column[:-1]), min_count=0, skip_nulls=False).as_py() is True
    values = ids.to_numpy()
    try:
        return bool((values[1:] > values[:-1]).all())
    except TypeError:  # text and numbers
        return False


def _numbered(frame: pd.DataFrame) -> pd.DataFrame:
    """The rows with an index from 0. If they have one already, the result is a new frame with the same columns."""
    if frame.index.equals(pd.RangeIndex(len(frame))):
        return frame.copy(deep=False)
    return frame.reset_index(drop=True)


def _order(frame: pd.DataFrame, on: str) -> NDArray[np.intp]:
    """The positions of the rows in the order in which pandas sorts them by this column. Raises its `TypeError`."""
    rows = ascending(frame[on])
    return frame[[on]].reset_index(drop=True).sort_values(on).index.to_numpy() if rows is None else rows


def _take(frame: pd.DataFrame, rows: NDArray[np.intp], on: str, answers: pd.DataFrame) -> pd.DataFrame:
    """The rows in this order, which makes their ids those of the answers, with a new index. Most are in order."""
    if (rows[1:] > rows[:-1]).all():
        return _numbered(frame)
    return _rows(frame, rows, {on: answers[on]} if frame[on].dtype == answers[on].dtype else None)


def _rows(frame: pd.DataFrame, rows: NDArray[np.intp], given: Mapping[str, pd.Series] | None = None) -> pd.DataFrame:
    """These rows with a new index; the columns in `given` replace those of the frame.

    Columns are taken one by one, unless that takes longer, because pandas would first copy all columns of a type into
    one block. Many columns of floats are one block already.
    """
    if not frame.columns.is_unique or len(rows) < _MIN_COLUMNWISE_ROWS or _is_block(frame):
        taken_at_once = frame.take(rows)
        taken_at_once.index = pd.RangeIndex(len(rows))
        return taken_at_once
    taken_columns: dict[Any, Any] = dict(given or {})
    for name, values in frame.items():
        if name in taken_columns:
            continue
        if isinstance(values.dtype, np.dtype) and values.dtype != object:
            taken_columns[name] = values.to_numpy()[rows]  # pandas' own `take` costs as much as that of 10,000 numbers
        else:
            taken_columns[name] = pd.Series(values.array.take(rows), dtype=values.dtype, copy=False)
    table = pd.DataFrame({name: taken_columns[name] for name in frame}, index=pd.RangeIndex(len(rows)), copy=False)
    table.columns = frame.columns
    return table


def _is_block(frame: pd.DataFrame) -> bool:
    """Whether most of a table is one block of floats."""
    return len(frame.columns) >= MANY and int(np.count_nonzero(frame.dtypes == np.float64)) >= MANY


def _difference(submitted: pd.Series, expected: pd.Series) -> str:
    unknown = submitted[~submitted.isin(expected)]
    # Repeated ids count once: how often the answers repeat an id, such as once for each box, can reveal an answer.
    missing = expected[~expected.isin(submitted)].drop_duplicates()
    problems = [
        f"{len(unknown)} unknown (such as {_short(unknown.iloc[0])})" if len(unknown) else "",
        f"{len(missing)} missing (such as {_short(missing.iloc[0])})" if len(missing) else "",
        f"{n} repeated" if (n := int(submitted.duplicated().sum())) else "",
    ]
    details = ", ".join(filter(None, problems)) or "they are of another type"
    return f"The ids in `{submitted.name}` are not those of the sample submission: {details}."


def _short(value: object) -> str:
    text = repr(getattr(value, "item", lambda: value)())
    return text if len(text) <= 40 else f"{text[:37]}..."


def _names(columns: Iterable[object]) -> str:
    names = [f"`{' '.join(str(name).split())[:60]}`" for name in columns]  # an agent's column names are untrusted
    if len(names) > 6:
        names = [*names[:5], f"{len(names) - 5} more"]
    return ("columns " if len(names) > 1 else "column ") + ", ".join(names) if names else "no columns"
