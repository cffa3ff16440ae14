"""The form of TRUTH: what an agent hands to `score.sh` with its predictions, on rows that it has held out itself.

TRUTH has the columns of the answers that the grader reads. They follow from what `competition.yaml` says of submissions
(`submission`, `files.gold_columns`), and `truth` there says what differs. No file below private/ is opened.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from common.errors import UserError
from competitions.facts import OTHER_COLUMNS, SubmittedColumn, TruthColumn

if TYPE_CHECKING:
    from competitions.competition import Competition

_ROWS = 4
_MOST_LISTED = 12
_WORDS = {
    "id": "identifies the row, the same in PREDICTIONS and TRUTH",
    "0 or 1": "0 or 1",
    "one": "1 in the column of the right class, 0 in the others",
    "number": "a number",
    "whole number": "a whole number",
    "class": "the right class",
    "text": "text",
    "format": "in the format of the description",
    "cell": "as in the sample submission",
}


@dataclass(frozen=True)
class TruthForm:
    """How TRUTH looks."""

    columns: Mapping[str, TruthColumn] | None
    """Its columns, in their order; None if it is no table."""
    text: str
    """What it holds, in words for the agent."""
    example: str
    """The content of an example, with invented or public rows."""

    @property
    def example_name(self) -> str:
        """The name of the example's file."""
        return "example_truth.jsonl" if self.columns is None else "example_truth.csv"

    def as_json(self) -> dict[str, Any] | None:
        """The columns for another process; see `columns_of`."""
        return None if self.columns is None else {name: column.model_dump() for name, column in self.columns.items()}


def columns_of(content: Mapping[str, Any] | None) -> dict[str, TruthColumn] | None:
    """The columns of `TruthForm.as_json`."""
    return None if content is None else {name: TruthColumn.model_validate(each) for name, each in content.items()}


def require_scorable(competition: Competition) -> None:
    """Raise `UserError` if it is not known how TRUTH looks for this competition."""
    if competition.published_format:
        raise UserError(
            f"{competition.id} has no scorer: the scorer needs competition.yaml's description of the truth, and the "
            "folder is in the published format; `mlebench new ID --from-published` makes a folder with one"
        )
    if competition.facts.truth_lines is None and hasattr(competition.module("grade"), "read_answers"):
        raise UserError(
            f"{competition.id} has no scorer: its grade.py reads the answers with a function of its own, so "
            f"{competition.folder / 'competition.yaml'} must say in `truth_lines` how they look"
        )


def truth_form(competition: Competition, public: Path) -> TruthForm:
    """The form of TRUTH. `public` is the directory that agents see, with the sample submission if that is public.

    Raises `UserError` if it is not known.
    """
    require_scorable(competition)
    facts = competition.facts
    if facts.truth_lines is not None:
        return TruthForm(None, facts.truth_lines.about, facts.truth_lines.example)
    header, sample = _first_rows(public, facts.files.sample_submission)
    columns = dict(_columns(competition, header))
    renamed = {new: old for old, new in facts.files.gold_columns.items()}
    ids = next((column.examples for column in columns.values() if column.values == "id"), [])
    count = len(ids) or max([_ROWS, *(len(column.examples) for column in columns.values())])
    sample = sample if len(sample) >= count else []
    classes = [name for name, column in columns.items() if column.values == "one"]
    writer = csv.writer(text := io.StringIO(), lineterminator="\n")
    writer.writerow(columns)
    for row in range(count):
        shown = sample[row] if sample else {}
        writer.writerow(
            int(name == classes[row % len(classes)])
            if column.values == "one"
            else _cell(column, row, row + position, shown.get(renamed.get(name, name), ""))
            for position, (name, column) in enumerate(columns.items())
        )
    return TruthForm(columns, _text(columns), text.getvalue())


def _first_rows(public: Path, path: str) -> tuple[list[str], list[dict[str, str]]]:
    """The columns of the sample submission and its first rows, by column; none if it is not public."""
    import pandas as pd

    file = public / path.removeprefix("public/")
    if not path.startswith("public/") or not file.is_file():
        return [], []
    table = pd.read_csv(file, nrows=2 * _ROWS, dtype=str, keep_default_na=False)
    header = list(table.columns)
    return header, [dict(zip(header, row, strict=True)) for row in table.itertuples(index=False, name=None)]


def _columns(competition: Competition, header: list[str]) -> Iterator[tuple[str, TruthColumn]]:
    """The columns by their names, those of the submission first."""
    facts = competition.facts
    stated: dict[str, SubmittedColumn | None] = dict(facts.submission)
    if not stated:
        reads = getattr(competition.module("grade"), "READS", None)
        names = (reads.answers if reads is not None else None) or header
        stated = dict.fromkeys(names)
    for name, submitted in stated.items():
        names = [other for other in header if other not in stated] if name == OTHER_COLUMNS else [name]
        for each in names:
            known = facts.files.gold_columns.get(each, each)
            column = facts.truth.get(OTHER_COLUMNS if name == OTHER_COLUMNS else known) or _as_submitted(submitted)
            if column.values != "not read":
                yield known, column
    known_names = {facts.files.gold_columns.get(name, name) for name in stated}
    for name, column in facts.truth.items():
        if name not in known_names:
            yield name, column


def _as_submitted(column: SubmittedColumn | None) -> TruthColumn:
    """A column of the truth that is as that of submissions, but without doubt: probabilities are 0 or 1."""
    if column is None:
        return TruthColumn(values="cell")
    if column.values == "any":
        return TruthColumn(values="not read")
    if column.values == "number" and column.low == 0 and column.high == 1:
        return TruthColumn(values="0 or 1" if column.sum is None else "one")
    return TruthColumn(values=column.values, low=column.low, high=column.high, empty=column.empty)


def _cell(column: TruthColumn, row: int, number: int, shown: str) -> Any:
    """A cell of the example: a stated one, else one made of a number, or that of the sample submission."""
    if column.examples:
        return column.examples[row % len(column.examples)]
    lowest = int(column.low or 0)
    match column.values:
        case "0 or 1":
            return number % 2
        case "number" if column.high is not None and column.high - lowest <= 1:
            return lowest + number % _ROWS / _ROWS
        case "number":
            return lowest + number % _ROWS + 0.5
        case "whole number":
            return lowest + number % (_ROWS if column.high is None else min(_ROWS, int(column.high) - lowest + 1))
        case "id":
            return shown or row + 1
        case _:
            return shown or "some text"


def _text(columns: Mapping[str, TruthColumn]) -> str:
    """The columns in words, one a line; columns with the same words are listed together."""
    names: dict[str, list[str]] = {}
    for name, column in columns.items():
        names.setdefault(_about(column), []).append(" ".join(name.split()))  # downloads may have any names
    lines = ["A CSV file with these columns, in any order; others are ignored:"]
    for words, same in names.items():
        listed = ", ".join(same[:_MOST_LISTED]) + (f" and {len(same) - _MOST_LISTED} more" * (len(same) > _MOST_LISTED))
        lines.append(f"  {listed}: {words}")
    return "\n".join(lines)


def _about(column: TruthColumn) -> str:
    words = column.about or _WORDS[column.values]
    if not column.about and column.low is not None and column.high is not None:
        words += f" from {column.low:g} to {column.high:g}"
    elif not column.about and column.low is not None:
        words += f", at least {column.low:g}"
    return f"{words}, or empty" if column.empty else words
