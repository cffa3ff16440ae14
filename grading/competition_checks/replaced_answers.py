"""Other answers to the same rows. The validity of a submission must not depend on them."""

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

    All columns are private that the sample submission does not have with the same values, except those `declared` as
    public. If no column is private, the words of a declared one are put into another order.
    """
    public = {name: {_value(row[index]) for row in rows if index < len(row)} for index, name in enumerate(header)}
    private = [
        name
        for name in answers.columns
        if name not in declared and set(map(_value, answers[name])) - public.get(name, set())
    ]
    generator = random.Random(0)
    ids = [name for name in answers.columns if name not in private]
    if len(ids) == 1 and _repeated_in_private(answers, ids[0], header, rows):  # objects of one image stay together
        unique_ids = list(dict.fromkeys(answers[ids[0]]))
        other_ids = dict(zip(unique_ids, generator.sample(unique_ids, len(unique_ids)), strict=True))
        reassigned = answers.assign(**{ids[0]: answers[ids[0]].map(other_ids)})
        ranks = {value: number for number, value in enumerate(unique_ids)}
        ranked = reassigned.sort_values(ids[0], key=lambda column: column.map(ranks), kind="stable")
        yield "the answers of other ids", ranked
        return
    for name in declared if not private else ():  # the words of a cell are public, but not their order
        if isinstance(answers[name].iloc[0], str):
            words = [generator.sample(cell, len(cell)) for cell in map(str.split, answers[name])]
            yield f"the words of {name} in another order", answers.assign(**{name: list(map(" ".join, words))})
            return
    orders = {
        "the answers of other rows": generator.sample(range(len(answers)), len(answers)),
        "some rows' answers for others": generator.choices(range(len(answers)), k=len(answers)),
    }
    for description, order in orders.items():
        replaced = answers.copy()
        for name in private:
            replaced[name] = answers[name].take(order).array
        yield description, replaced


def _repeated_in_private(answers: pd.DataFrame, name: str, header: Row, rows: list[Row]) -> bool:
    """Whether ids are repeated, but not as often as in the sample submission, which is public."""
    position = header.index(name) if name in header else len(header)
    expected_counts = Counter(_value(row[position]) for row in rows if position < len(row))
    return bool(answers[name].duplicated().any()) and Counter(map(_value, answers[name])) != expected_counts


def _value(cell: object) -> str:
    """A cell as pandas compares it: 024, "24" and 24.0 are the same."""
    text = str(cell).strip()
    try:
        return repr(float(text))
    except ValueError:
        return text
