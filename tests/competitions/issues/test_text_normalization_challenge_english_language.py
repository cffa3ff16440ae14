"""Probes of Text Normalization Challenge (English)."""

from __future__ import annotations

from tests.competitions.issues._probe import World
from tests.competitions.issues._text_normalization import check_missing_value_tokens, check_sentences_on_both_sides


def test_missing_value_tokens(v1: World, v2: World) -> None:
    check_missing_value_tokens(v1, "en")


def test_sentences_on_both_sides(v1: World, v2: World) -> None:
    check_sentences_on_both_sides(v1, "en")
