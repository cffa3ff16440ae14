"""Probes of Spaceship Titanic."""

from __future__ import annotations

from tests.competitions.issues._probe import (
    World,
    a_word_makes_everything_wrong,
)


def test_features_in_answers(v1: World, v2: World) -> None:
    """Graders need one label; v1 gives them the features as well."""
    assert "Cabin" in v1.truth
    assert list(v2.truth) == ["PassengerId", "Transported"]


def test_text_scores_zero(v1: World, v2: World) -> None:
    a_word_makes_everything_wrong(v1, v2, "Transported")
