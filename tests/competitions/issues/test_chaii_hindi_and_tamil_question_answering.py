"""Probes of chaii - Hindi and Tamil Question Answering."""

from __future__ import annotations

import io

import pandas as pd

from tests.competitions.issues._probe import World, remade, table_bytes


def test_both_empty(v1: World, v2: World) -> None:
    """Who rightly predicts that there is no answer gets nothing for it."""
    answers = pd.DataFrame({"id": ["a", "b"], "PredictionString": [None, "word"]})
    assert v1.score(answers, answers) == 0.5
    assert v2.score(answers, answers) == 1.0


def test_missing_value_texts(v1: World, v2: World) -> None:
    """Questions whose answer is a word such as `null` ask for a text that was taken away."""

    def say_null(content: bytes) -> bytes:
        return table_bytes(pd.read_csv(io.BytesIO(content)).assign(question="null", answer_text="null"))

    for edition, world in remade(v1, {"train.csv": say_null}).items():
        shown = world.table("train.csv", dtype=str, keep_default_na=False)
        assert (shown[["question", "answer_text"]] == "").all(axis=None) == (edition == "v1")


def test_passages_on_both_sides(v1: World, v2: World) -> None:
    """Passages of the test set were read with other questions, and their answers, in the training set."""

    def three_questions_each(content: bytes) -> bytes:
        table = pd.read_csv(io.BytesIO(content))
        return table_bytes(table.assign(context=[f"passage {row // 3}" for row in range(len(table))]))

    worlds = remade(v1, {"train.csv": three_questions_each})
    assert worlds["v1"].shared("train.csv", "test.csv", "context") > 0.5
    assert worlds["v2"].shared("train.csv", "test.csv", "context") == 0
