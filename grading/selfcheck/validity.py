"""Check that whether a submission is valid depends on public facts only, never on the answers.

Agents may ask the validation service thousands of times. If what it says depends on the answers, each question tells
them a bit of these.
"""

from __future__ import annotations

import random
import tempfile
import warnings
from collections import Counter
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from competitions.scoring.errors import InvalidSubmission
from grading.selfcheck.csvfile import Row, table, to_csv, write_anew
from grading.selfcheck.hostile import hostile_submissions
from grading.selfcheck.subject import LARGEST_SAMPLE, Skipped, Subject

if TYPE_CHECKING:
    import pandas as pd

ROWS = 8
"""Rows of the gold submission of which each is damaged alone."""
_DAMAGED = ("", "-1", "nan", "word", "1 0")


def validity(subject: Subject) -> list[str]:
    """Hostile submissions are valid or not whatever the answers are, as long as they have the same ids."""
    sample, gold = (subject.file(role).read_bytes() for role in ("sample_submission", "gold_submission"))
    if len(sample) > LARGEST_SAMPLE:
        raise Skipped(f"the sample submission has {len(sample) >> 20} MB; try it on a smaller download")
    others = dict(replaced_answers(subject.answers, *table(sample), subject.competition.facts.public_answers))
    problems = []
    with tempfile.TemporaryDirectory(prefix="mlebench-check-") as folder, warnings.catch_warnings(action="ignore"):
        path = Path(folder) / "submission.csv"
        for name, content in (*hostile_submissions(sample, gold), *damaged_rows(*table(gold))):
            write_anew(path, content)
            try:
                submission = subject.competition.read_submission(path)
            except InvalidSubmission:  # without a look at the answers
                continue
            said = verdict(subject, submission, subject.answers)
            problems += [
                f"{name}: {said!r} with the answers, {other!r} with {how}"
                for how, answers in others.items()
                if (other := verdict(subject, submission, answers)) != said
            ]
    return problems


def verdict(subject: Subject, submission: Any, answers: Any) -> str:
    """What the validation service would say."""
    try:
        subject.competition.check_table(submission, answers, subject.edition)
    except InvalidSubmission as error:
        return str(error)
    return "valid"


def replaced_answers(
    answers: pd.DataFrame, header: Row, rows: list[Row], declared: Collection[str] = ()
) -> Iterator[tuple[str, pd.DataFrame]]:
    """Other answers to the same rows: (how, answers) with the rows' private columns in another order, and some twice.

    Private are all columns that the sample submission does not have with the same values, except those `declared` as
    public. If that leaves none, the words of a declared one are put into another order.
    """
    public = {name: {_value(row[place]) for row in rows if place < len(row)} for place, name in enumerate(header)}
    private = [
        name
        for name in answers.columns
        if name not in declared and set(map(_value, answers[name])) - public.get(name, set())
    ]
    chance = random.Random(0)
    ids = [name for name in answers.columns if name not in private]
    if len(ids) == 1 and _repeated_in_private(answers, ids[0], header, rows):  # objects of one image stay together
        known = list(dict.fromkeys(answers[ids[0]]))
        others = dict(zip(known, chance.sample(known, len(known)), strict=True))
        moved = answers.assign(**{ids[0]: answers[ids[0]].map(others)})
        place = {each: number for number, each in enumerate(known)}
        yield "the answers of other ids", moved.sort_values(ids[0], key=lambda each: each.map(place), kind="stable")
        return
    for name in declared if not private else ():  # which words a cell has is public, but not their order
        if isinstance(answers[name].iloc[0], str):
            words = [chance.sample(each, len(each)) for each in map(str.split, answers[name])]
            yield f"the words of {name} in another order", answers.assign(**{name: list(map(" ".join, words))})
            return
    orders = {
        "the answers of other rows": chance.sample(range(len(answers)), len(answers)),
        "some rows' answers for others": chance.choices(range(len(answers)), k=len(answers)),
    }
    for how, order in orders.items():
        other = answers.copy()
        for name in private:
            other[name] = answers[name].take(order).array
        yield how, other


def _repeated_in_private(answers: pd.DataFrame, name: str, header: Row, rows: list[Row]) -> bool:
    """Whether ids repeat in another way than in the sample submission, which tells how often each of its ids does."""
    place = header.index(name) if name in header else len(header)
    told = Counter(_value(row[place]) for row in rows if place < len(row))
    return bool(answers[name].duplicated().any()) and Counter(map(_value, answers[name])) != told


def _value(cell: object) -> str:
    """A cell as pandas compares it: 024, "24" and 24.0 are the same."""
    text = str(cell).strip()
    try:
        return repr(float(text))
    except ValueError:
        return text


def damaged_rows(header: Row, rows: list[Row]) -> Iterator[tuple[str, bytes]]:
    """Yield the gold submission with the last word of a single cell replaced, in rows all over it."""
    for number in sorted({round(at * (len(rows) - 1) / (ROWS - 1)) for at in range(ROWS)}):
        words = rows[number][-1].split(" ")
        for word in _DAMAGED:
            for place in {0, len(words) - 1}:
                cell = " ".join([*words[:place], word, *words[place + 1 :]])
                changed = [*rows[:number], [*rows[number][:-1], cell], *rows[number + 1 :]]
                yield f"row {number}: {word!r} for word {place}", to_csv(header, changed)
