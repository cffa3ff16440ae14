"""Submissions with known errors: right answers, those of the sample submission, and mixtures of both, row by row."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from grading.competition_checks.csvfile import Row, table, to_csv
from grading.competition_checks.subject import Skipped

if TYPE_CHECKING:
    from grading.competition_checks.subject import Subject


_MAX_CLASSES = 20
"""Different numbers in a column up to which they are taken as classes."""


@dataclass(frozen=True)
class Rows:
    """Rows of the right answers, in the form of submissions, and those of the sample submission for the same ids."""

    header: Row
    right: list[Row]
    sample: list[Row]
    ids: list[int]
    """Places of the columns that identify a row."""

    @property
    def predicted(self) -> list[int]:
        """Places of the other columns."""
        return [place for place in range(len(self.header)) if place not in self.ids]


def rows_of(subject: Subject) -> Rows:
    """Raises `Skipped` if the right answers are not found by the ids of the sample submission."""
    files = subject.competition.facts.files
    header, sample = table(subject.file("sample_submission").read_bytes())
    gold_header, gold = table(subject.file("gold_submission").read_bytes())
    columns = [files.gold_columns.get(name, name) for name in header]
    columns = [name if name in gold_header else given for name, given in zip(columns, header, strict=True)]
    if not set(columns) <= set(gold_header):
        raise Skipped("the right answers have other columns than submissions")
    right = [[row[place] for place in map(gold_header.index, columns)] for row in gold]
    values = [({row[place] for row in right}, {row[place] for row in sample}) for place in range(len(header))]
    ids = [place for place, (own, others) in enumerate(values) if own <= others]
    if 0 in ids and len(values[0][0]) == len(right):  # one column suffices; another may have its values by chance
        ids = [0]
    by_id = {tuple(row[place] for place in ids): row for row in sample}
    pairs = [by_id.get(tuple(row[place] for place in ids)) for row in right]
    found = [row for row in pairs if row is not None]
    if not ids or len(by_id) < len(right) or len(found) < len(right):
        raise Skipped("the rows of right answers and submissions are not found by ids")
    return Rows(header, right, found, ids)


def score_rows(subject: Subject, header: Sequence[str], rows: Iterable[Row]) -> float:
    """The score of a submission with these rows. Raises `InvalidSubmission`."""
    return subject.score(write_rows(subject, header, rows))


def write_rows(subject: Subject, header: Sequence[str], rows: Iterable[Row]) -> Path:
    """A file with these rows, which the next call replaces."""
    path = Path(subject.scratch) / "submission.csv"
    path.write_bytes(to_csv(header, rows))
    return path


def mixture(rows: Rows, share: float) -> list[Row]:
    """The right answers, of which about this share is replaced by those of the sample submission.

    Which ones is decided by their ids alone: more are replaced with a larger share, and the same in every dataset.
    """
    pairs = zip(rows.right, rows.sample, strict=True)
    return [wrong if _place(right, rows.ids) < share else right for right, wrong in pairs]


def numbers_of(cells: Sequence[str]) -> list[float] | None:
    """The cells of a column as numbers; None if they are none, or classes: few different values."""
    try:
        numbers = list(map(float, cells))
    except ValueError:
        return None
    return numbers if len(set(cells)) > _MAX_CLASSES and all(map(math.isfinite, numbers)) else None


def number_cells(numbers: Iterable[float], like: Iterable[float]) -> list[str]:
    """Cells with these numbers, whole ones if those of a column are."""
    whole = all(number.is_integer() for number in like)
    return [str(round(number)) if whole else repr(number) for number in numbers]


def _place(row: Row, ids: list[int]) -> float:
    """A number from 0 to 1 that belongs to a row, the same in every dataset."""
    text = "\0".join(row[place] for place in ids)
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest()) / 2**64
