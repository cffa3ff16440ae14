"""What edition v2 refuses in every competition, whatever it is about; see docs/editions.md.

The validation service tells agents whether a submission is valid. A verdict that depends on the answers is therefore a
leak: an agent that asks about one row after another learns something about each of them.
"""

from __future__ import annotations

import re
from pathlib import Path

import pandas as pd
import pytest

from competitions import registry
from competitions.facts import OTHER_COLUMNS, SubmittedColumn
from tests.competitions.issues._probe import World, cell
from tests.prepared import PreparedCompetitions

pytestmark = pytest.mark.slow

COMPETITIONS = registry.list()
ROWS = 4
"""How many rows of a submission are asked about, spread over the file."""
REPEATED_IN_THE_ANSWERS = {"detecting-insults-in-social-commentary"}
"""Competitions whose rows are identified by texts that occur more than once in the test set."""


@pytest.fixture(params=COMPETITIONS)
def world(request: pytest.FixtureRequest, prepared: PreparedCompetitions, tmp_path: Path) -> World:
    return World(prepared.get(request.param, "v2"), tmp_path)


def key(world: World) -> str:
    """The column that identifies rows: of those that do, the first one without repeated values."""
    sample, stated = world.sample, world.prepared.competition.facts.submission
    names = [name for name, column in stated.items() if column.values == "id"]
    return next((name for name in names if sample[name].is_unique and len(sample) > 1), names[0])


def places(world: World) -> list[int]:
    rows = len(world.sample)
    return sorted({place * (rows - 1) // (ROWS - 1) for place in range(ROWS)})


def test_columns_are_those_of_the_sample_submission(world: World) -> None:
    sample, stated = world.sample, world.prepared.competition.facts.submission
    assert set(stated) - {OTHER_COLUMNS} <= set(sample)
    assert OTHER_COLUMNS in stated or set(stated) == set(sample)
    assert not world.refusal(sample[list(sample)[::-1]]), "in any order"
    for name in list(sample)[:3]:
        assert world.refusal(sample.drop(columns=name)).startswith(f"The submission lacks column `{name}`; it has ")
    assert re.match(r"The submission must not have column `surplus`, only ", world.refusal(sample.assign(surplus=1)))


def test_rows_are_those_of_the_sample_submission(world: World) -> None:
    sample, name = world.sample, key(world)
    for row in places(world):
        less, more = sample.drop(index=row), pd.concat([sample, sample[row : row + 1]])
        for rows in (less, more):
            assert re.match(rf"The submission has {len(rows)} rows; \d+ are expected\.", world.refusal(rows))
    unknown = "-77" if sample[name].str.lstrip("-").str.isdigit().all() else "nobody"
    not_those = re.compile(r"The ids in `[\w ]+` are not those of the sample submission: .*")
    assert all(not_those.match(world.refusal(cell(sample, name, unknown, row))) for row in places(world))
    if len(sample) > 1 and world.prepared.competition.id not in REPEATED_IN_THE_ANSWERS:
        assert not_those.match(world.refusal(cell(sample, name, sample[name].iloc[-1])))


def test_cells_are_what_is_stated(world: World) -> None:
    sample, stated, ids = world.sample, world.prepared.competition.facts.submission, key(world)
    for name in [str(each) for each in sample if each != ids][:3]:
        each = stated.get(name) or stated[OTHER_COLUMNS]
        for value, message in damaged(each).items():
            assert re.search(message, said := world.refusal(cell(sample, name, value))), (name, value, said)
        if each.values == "text" or each.empty:
            assert not world.refusal(cell(sample, name, "" if each.empty else "some text"))


def damaged(column: SubmittedColumn) -> dict[str, str]:
    """Cells that are no values of the column, with what every grader says about them."""
    if column.values in ("class", "format"):
        return {"some words": r"^`.+` (of|holds|must) |^The notebook"} | ({} if column.empty else {"": r"`.+`"})
    if column.values == "text":
        return {} if column.empty else {"": r"^`.+` has 1 empty cell; every row needs (text|a label)\."}
    if not column.numeric:
        return {}
    cells = {
        "": r"^`.+` has 1 empty cell; every row needs a number\.",
        "inf": r"^`.+` has 1 infinite number; every row needs a finite one\.",
        "word": r"^`.+` must hold numbers; it has 1 other cell: 'word'",
    }
    outside = r"^`.+` has 1 cell (below|outside) "
    cells |= {f"{column.low - 1:g}": outside} if column.low is not None else {}
    cells |= {f"{column.high + 1:g}": outside} if column.high is not None else {}
    cells |= {"0.25": r"^`.+` has 1 cell outside |^`.+` must hold classes; "} if column.values == "whole number" else {}
    return cells | ({"0.123": r"^The probabilities of every row must sum to 1; "} if column.sum else {})


@pytest.mark.parametrize("value", ["", "inf", "word"])
def test_verdicts_do_not_depend_on_the_answers(world: World, value: str) -> None:
    """The same change is refused in every row, or in none."""
    sample, ids = world.sample, key(world)
    columns = [str(name) for name in sample if name != ids][-1:]
    for name in columns:
        verdicts = {bool(world.refusal(cell(sample, name, value, row))) for row in places(world)}
        assert len(verdicts) == 1, name
