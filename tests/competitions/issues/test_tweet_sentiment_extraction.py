"""Probes of Tweet Sentiment Extraction."""

from __future__ import annotations

import io

import pandas as pd
import pytest

from competitions.scoring.errors import InvalidSubmission
from tests.competitions.issues._probe import (
    World,
    remade,
    table_bytes,
)


def test_missing_value_texts(v1: World, v2: World) -> None:
    """The tweet `null` is shown as a blank."""

    def say_null(content: bytes) -> bytes:
        return table_bytes(pd.read_csv(io.BytesIO(content)).assign(text="null", selected_text="null"))

    for edition, world in remade(v1, {"train.csv": say_null}).items():
        shown = world.table("test.csv", dtype=str, keep_default_na=False)["text"]
        assert (shown == "").all() == (edition == "v1")


def test_both_empty(v1: World, v2: World) -> None:
    """Who rightly selects nothing is refused."""
    answers = pd.DataFrame({"textID": ["a", "b"], "selected_text": [None, "word"]})
    with pytest.raises(InvalidSubmission):
        v1.score(answers, answers)
    assert v2.score(answers, answers) == 1.0
