"""What edition v2 refuses in every competition, whatever it is about; see docs/editions.md.

The validation service tells agents whether a submission is valid. A verdict that depends on the answers is therefore a
leak: an agent that asks about one row after another learns something about each of them.
"""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest

from competitions import registry
from tests.competitions.issues._probe import World, cell
from tests.prepared import PreparedCompetitions

COMPETITIONS = registry.list()
ROWS = 4
"""How many rows of a submission are asked about, spread over the file."""
REPEATED_IN_THE_ANSWERS = {"detecting-insults-in-social-commentary"}
"""Competitions whose rows are identified by texts that occur more than once in the test set."""


@pytest.fixture(params=COMPETITIONS)
def world(request: pytest.FixtureRequest, prepared: PreparedCompetitions, tmp_path: Path) -> World:
    return World(prepared.get(request.param, "v2"), tmp_path)


def key(world: World) -> str:
    """The column that identifies rows: the first one without repeated values."""
    sample = world.sample
    names = [str(name) for name in sample]
    return next((name for name in names if sample[name].is_unique and len(sample) > 1), names[0])


def places(world: World) -> list[int]:
    rows = len(world.sample)
    return sorted({place * (rows - 1) // (ROWS - 1) for place in range(ROWS)})


def test_missing_rows_are_refused(world: World) -> None:
    assert all(world.refusal(world.sample.drop(index=row)) for row in places(world))


def test_additional_rows_are_refused(world: World) -> None:
    assert all(world.refusal(pd.concat([world.sample, world.sample[row : row + 1]])) for row in places(world))


def test_unknown_and_repeated_ids_are_refused(world: World) -> None:
    sample, name = world.sample, key(world)
    unknown = "-77" if sample[name].str.lstrip("-").str.isdigit().all() else "nobody"
    assert all(world.refusal(cell(sample, name, unknown, row)) for row in places(world))
    if len(sample) > 1 and world.prepared.competition.id not in REPEATED_IN_THE_ANSWERS:
        assert world.refusal(cell(sample, name, sample[name].iloc[-1]))


@pytest.mark.parametrize("value", ["", "inf", "word"])
def test_verdicts_do_not_depend_on_the_answers(world: World, value: str) -> None:
    """The same change is refused in every row, or in none."""
    sample = world.sample
    columns = [str(name) for name in sample if name != key(world)][-1:]
    for name in columns:
        verdicts = {bool(world.refusal(cell(sample, name, value, row))) for row in places(world)}
        assert len(verdicts) == 1, name
