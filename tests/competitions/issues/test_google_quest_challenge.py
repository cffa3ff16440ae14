"""Probes of Google QUEST Q&A Labeling."""

from __future__ import annotations

import io
import math

import numpy as np
import pandas as pd
import pytest

from competitions.editions import Edition
from competitions.scoring.errors import InvalidSubmission
from competitions.scoring.notes import ScoreNote
from tests.competitions.issues._probe import (
    World,
    remade,
    table_bytes,
)

SPELLING = "question_type_spelling"


def test_ids_not_compared(v1: World, v2: World) -> None:
    """Ids that nobody asked about pass, as long as they sort."""
    invented = v1.perfect.sort_values("qa_id", key=lambda ids: ids.astype(int)).assign(qa_id=range(-len(v1.perfect), 0))
    assert v1.accepts(invented)
    assert "unknown" in v2.refusal(invented)


class TestNotes:
    """Not a probe of an issue that v2 fixes."""

    def test_the_grade_says_that_the_order_of_ids_that_repeat_depends_on_the_processor(self, v1: World) -> None:
        columns = v1.perfect.columns
        rows = 100
        answers = pd.DataFrame({name: np.linspace(0, 1, rows) for name in columns}).assign(qa_id=range(rows))
        twice = answers.assign(qa_id=[row // 2 for row in range(rows)])
        with pytest.warns(ScoreNote, match="`qa_id` are not in the order of the sample"):
            assert v1.score(twice, answers) > 0.99


def test_nan_scores(v1: World, v2: World) -> None:
    """An empty cell, or one constant column, and the run has no score: it is neither good nor bad."""
    answers = pd.DataFrame({"qa_id": [1, 2, 3], "a": [0.0, 0.5, 1.0], "b": [1.0, 0.0, 0.5]})
    constant, gap = answers.assign(b=0.5), answers.assign(b=[1.0, 0.0, math.nan])
    assert math.isnan(v1.score(constant, answers))
    assert math.isnan(v1.score(gap, answers))
    assert v2.score(constant, answers) == pytest.approx(0.5)
    with pytest.raises(InvalidSubmission, match="empty cell"):
        v2.score(gap, answers)


def test_text_ranked(v1: World, v2: World) -> None:
    """Words are ranked by the alphabet, where numbers are meant."""
    target = v1.perfect.columns[1]
    words = [w.perfect.assign(**{target: [f"w{row:02}" for row in range(len(w.perfect))]}) for w in (v1, v2)]
    assert v1.accepts(words[0])
    assert target in v2.refusal(words[1])


def test_questions_on_both_sides(v1: World, v2: World) -> None:
    """Nearly the labels of a question are given: the training set has it with another answer."""
    worlds = remade(v1, {"train.csv": repeated_questions})
    assert worlds["v1"].shared("train.csv", "test.csv", "url") > 0.5
    assert worlds["v2"].shared("train.csv", "test.csv", "url") == 0


def repeated_questions(content: bytes) -> bytes:
    """Every question asked three times."""
    table = pd.read_csv(io.BytesIO(content))
    return table_bytes(table.assign(url=[f"https://questions/{row // 3}" for row in range(len(table))]))


@pytest.mark.parametrize(("edition", "depends"), [("v1", True), ("v2", False)])
def test_swap_by_test_label(v1: World, v2: World, edition: Edition, depends: bool) -> None:
    """Other labels lead to another test part, so what is in it says something about the labels."""

    def drawn(labels: pd.DataFrame) -> set[int]:
        return set(remade(v1, {"train.csv": table_bytes(labels)})[edition].table("test.csv")["qa_id"])

    original = v1.kaggle.read_csv("train.csv")
    distinct = original.assign(**{SPELLING: np.linspace(0, 1, len(original))})
    held = drawn(distinct)
    constant = distinct.assign(**{SPELLING: distinct[SPELLING].where(~distinct["qa_id"].isin(held), 0)})
    assert (drawn(constant) != held) == depends
