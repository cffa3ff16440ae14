"""Probes of Cdiscount’s Image Classification Challenge."""

from __future__ import annotations

from tests.competitions.issues._probe import (
    World,
    a_word_makes_everything_wrong,
)


def test_text_scores_zero(v1: World, v2: World) -> None:
    a_word_makes_everything_wrong(v1, v2, "category_id")
