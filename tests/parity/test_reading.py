"""Scores and messages do not depend on how tables are read: in columns, with text as Arrow holds it, or by pandas."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator
from pathlib import Path

import pytest

from competitions import registry
from competitions.editions import Edition
from competitions.tables import columns
from grading import InvalidSubmission
from tests.parity.editions import fixed_in_v2
from tests.prepared import Prepared, PreparedCompetitions

pytestmark = pytest.mark.slow

COMPETITIONS = [name for name in registry.list() if registry.get(name).facts.complexity != "demo"]
ODD_CELLS = ("", "1e400", "7", "two words", "1_0")
AS_OBJECTS = (
    # pandas reads its miniature: whether a column of "-" is one of text is known from more rows only
    "google-research-identify-contrails-reduce-global-warming",
    # has a few thousand rows
    "osic-pulmonary-fibrosis-progression",
    # holds sets
    "tensorflow2-question-answering",
)
"""Where text is held as Python strings nevertheless, or its grader makes objects by itself."""
MOST_COLUMNS = 3
MOST_BYTES = 200_000


def odd(path: Path, folder: Path) -> Iterator[Path]:
    """Variants of a submission: a cell of each of the first columns replaced, all of it quoted, an empty row."""
    rows = list(csv.reader(io.StringIO(path.read_text("utf-8"), newline="")))
    if len(rows) < 3 or path.stat().st_size > MOST_BYTES:
        return
    variants = {"quoted": rows, "gap": [*rows[:2], [], *rows[2:]], "reversed": [rows[0], *rows[:0:-1]]}
    for column in range(min(len(rows[0]), MOST_COLUMNS)):
        for number, cell in enumerate(ODD_CELLS):
            changed = [*rows[1][:column], cell, *rows[1][column + 1 :]]
            variants[f"{column}-{number}"] = [rows[0], changed, *rows[2:]]
    for name, table in variants.items():
        made = folder / f"{name}.csv"
        with made.open("w", encoding="utf-8", newline="") as file:
            csv.writer(file, quoting=csv.QUOTE_ALL if name == "quoted" else csv.QUOTE_MINIMAL).writerows(table)
        yield made


def outcomes(subject: Prepared, submissions: list[Path]) -> dict[str, str]:
    answers = subject.competition.answers(subject.path)
    found = {}
    for path in submissions:
        try:
            score = subject.competition.score(path, answers.copy(), subject.edition)
            found[path.stem] = f"{score:.12g}"
        except InvalidSubmission as verdict:
            found[path.stem] = str(verdict)
    return found


def cases() -> Iterator[tuple[str, Edition]]:
    """Both editions, where v2 fixes something of the grader."""
    for name in COMPETITIONS:
        yield name, "v1"
        if fixed_in_v2(registry.get(name), "grade"):
            yield name, "v2"


@pytest.mark.parametrize(("competition_id", "edition"), cases())
def test_the_way_of_reading_decides_nothing(
    competition_id: str,
    edition: Edition,
    prepared: PreparedCompetitions,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    subject = prepared.get(competition_id, edition)
    given = [subject.submission(name) for name in subject.expected["scores"]]
    submissions = [*given, *odd(given[0], tmp_path)]
    found = {}
    for way, size in {"columns": 0, "pandas": 1 << 40}.items():
        monkeypatch.setattr(columns, "SMALL", size)
        found[way] = outcomes(subject, submissions)
    assert found["columns"] == found["pandas"]


@pytest.mark.parametrize("competition_id", COMPETITIONS)
def test_text_is_not_held_as_python_strings(
    competition_id: str, prepared: PreparedCompetitions, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of large tables: that takes several times the memory, and graders would turn it into Arrow's arrays again."""
    subject = prepared[competition_id]
    monkeypatch.setattr(columns, "SMALL", 0)
    answers = subject.competition.answers(subject.path)
    files = subject.competition.facts.files
    sample = subject.competition.read_submission(subject.path / files.sample_submission)
    held = {name for table in (answers, sample) for name in table.columns if table[name].dtype == object}
    assert bool(held) == (competition_id in AS_OBJECTS), held
