"""Other answers to the same rows, with which whether a submission is valid must be the same."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Collection, Iterator
from typing import TYPE_CHECKING

from grading.competition_checks.csvfile import Row

if TYPE_CHECKING:
    import pandas as pd


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
