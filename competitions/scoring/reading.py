"""Read submissions and answers as the published benchmark reads them."""

from __future__ import annotations

import stat
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, Literal

import pandas as pd
from pandas.errors import EmptyDataError

from common.texts import is_pointer
from competitions.scoring.errors import InvalidSubmission
from competitions.tables import columns
from competitions.tables.columns import Texts

Dtype = str | type | Mapping[str, str | type] | None
# "round_trip" is exact; None is pandas 2's own fast converter, which may be one unit off in the last place.
FloatParser = Literal["round_trip"] | None


@dataclass(frozen=True)
class Reads:
    """What a grader reads of its two tables. A `grade.py` that does not define `READS` reads everything.

    Args:
        answers: the columns of the answers that `grade` uses; None for all of them.
        columns: by edition, the columns of a submission that count. Others need not be read if the file has all of
            these.
        texts: how columns of text are held. With "arrow" they are columns of pandas' type `string[pyarrow]`, which
            `checks` and `cells` accept, with a missing value where a cell is empty.
    """

    answers: tuple[str, ...] | None = None
    texts: Texts = "object"
    columns: Mapping[str, tuple[str, ...]] = field(default_factory=dict)


def read_submission(
    path: Path,
    *,
    dtype: Dtype = None,
    keep_default_na: bool = True,
    float_precision: FloatParser = "round_trip",
    reads: Reads = Reads(),
    edition: str | None = None,
) -> pd.DataFrame:
    """Read the submission as a table. By `reads` and `edition`, columns may be left out.

    An empty file gives a frame without columns and rows. Raises `InvalidSubmission` if the file does not exist or
    pandas cannot read it as a table.
    """
    path = Path(path)
    try:
        mode = path.stat().st_mode
    except (FileNotFoundError, NotADirectoryError) as error:
        raise InvalidSubmission(f"There is no file {path.name}; write the submission as a CSV file.") from error
    if not stat.S_ISREG(mode):  # a named pipe would block the grader forever
        raise InvalidSubmission(f"{path.name} is not a regular file; write the submission as a CSV file.")
    with path.open("rb") as file:
        if is_pointer(file.read(64)):
            raise InvalidSubmission(f"{path.name} is only a pointer of Git LFS; write the submission as a CSV file.")
    counted = reads.columns.get(edition or "")
    read_columns = partial(_read, path, dtype, keep_default_na, float_precision)
    try:
        table = read_columns(Reads(answers=counted, texts=reads.texts))
        if counted is not None and not set(counted) <= set(table.columns):
            table = read_columns(Reads(texts=reads.texts))  # the error message names all columns of the file
    except UnicodeDecodeError as error:
        raise InvalidSubmission(f"{path.name} is not UTF-8 text; write it as a CSV file in UTF-8.") from error
    except (ValueError, OverflowError) as error:  # the arguments are fixed, so the cause is in the file
        reason = " ".join(str(error).split())
        raise InvalidSubmission(f"{path.name} cannot be read as a CSV file: {reason}") from error
    return table


def read_answers(
    path: Path,
    *,
    dtype: Dtype = None,
    keep_default_na: bool = True,
    float_precision: FloatParser = "round_trip",
    reads: Reads = Reads(),
) -> pd.DataFrame:
    """Read the answers like a submission. Errors propagate, because they are not the agent's."""
    return _read(Path(path), dtype, keep_default_na, float_precision, reads)


def _read(
    path: Path,
    dtype: Dtype,
    keep_default_na: bool,
    float_precision: FloatParser,
    reads: Reads,
) -> pd.DataFrame:
    if dtype is None and keep_default_na and float_precision == "round_trip":
        table = columns.read_table(path, reads.answers)
        if table is not None:
            return columns.frame(table, reads.texts)
    options: dict[str, Any] = {"dtype": dtype, "keep_default_na": keep_default_na, "float_precision": float_precision}
    try:
        frame = pd.read_csv(path, compression=None, **options)
    except EmptyDataError:
        return pd.DataFrame()
    return frame if reads.answers is None else frame[[name for name in frame.columns if name in reads.answers]]
