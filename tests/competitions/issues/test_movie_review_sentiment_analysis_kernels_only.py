"""Probes of Movie Review Sentiment Analysis (Kernels Only)."""

from __future__ import annotations

from typing import Any

import pandas as pd

from tests.competitions.issues._probe import (
    World,
    a_word_makes_everything_wrong,
    blanked,
)


def test_text_scores_zero(v1: World, v2: World) -> None:
    a_word_makes_everything_wrong(v1, v2, "Sentiment")


def parts(world: World) -> tuple[pd.DataFrame, pd.DataFrame]:
    options: dict[str, Any] = {"sep": "\t", "dtype": str, "keep_default_na": False}
    return (world.packed("train.tsv.zip", "train.tsv", **options), world.packed("test.tsv.zip", "test.tsv", **options))


def test_sentences_on_both_sides(v1: World, v2: World) -> None:
    """The sentiment of a sentence is known from its parts."""

    def known(world: World) -> float:
        train, test = parts(world)
        return float(test["SentenceId"].isin(train["SentenceId"]).mean())

    assert known(v1) > 0.5
    assert known(v2) == 0


def test_missing_value_phrases(v1: World, v2: World) -> None:
    """The phrase `None` is a phrase."""
    options: dict[str, Any] = {"sep": "\t", "dtype": str, "keep_default_na": False}
    original = v1.kaggle.archive("train.tsv.zip").read_csv("train.tsv", **options).set_index("PhraseId")["Phrase"]

    def lost(world: World) -> int:
        return sum(blanked(shown["Phrase"], original[shown["PhraseId"]]) for shown in parts(world))

    assert lost(v1) > 0
    assert lost(v2) == 0
