"""Probes of LMSYS - Chatbot Arena Human Preference Predictions."""

from __future__ import annotations

import io
import math

import pandas as pd
import pytest

from tests.competitions.issues._probe import (
    World,
    remade,
    table_bytes,
)

VERDICTS = ["winner_model_a", "winner_model_b", "winner_tie"]


def test_rows_not_rescaled(v1: World, v2: World) -> None:
    """Kaggle's example of a submission, with thirds of two digits, is refused."""
    thirds = dict.fromkeys(VERDICTS, "0.33")
    assert v1.refusal(v1.sample.assign(**thirds))
    assert v2.grade(v2.sample.assign(**thirds)) == pytest.approx(math.log(3))


def test_prompts_on_both_sides(v1: World, v2: World) -> None:
    """People's verdicts about answers to a test prompt are in the training set."""
    assert v1.shared("train.csv", "test.csv", "prompt") > 0
    assert v2.shared("train.csv", "test.csv", "prompt") == 0


def test_missing_value_texts(v1: World, v2: World) -> None:
    """An answer such as `null` is not shown to those who judge it."""
    columns = ["prompt", "response_a", "response_b"]

    def say_null(content: bytes) -> bytes:
        table = pd.read_csv(io.BytesIO(content), dtype=str, keep_default_na=False)
        return table_bytes(table.assign(response_a="null"))

    for edition, world in remade(v1, {"train.csv": say_null}).items():
        shown = world.table("test.csv", dtype=str, keep_default_na=False)[columns]
        assert (shown["response_a"] == "").all() == (edition == "v1")
