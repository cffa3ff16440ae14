"""Probes of Herbarium 2021 - FGVC8."""

from __future__ import annotations

from tests.competitions.issues._probe import (
    World,
    fractions_pass,
    the_seed_tells_categories,
)


def test_fractions_truncated(v1: World, v2: World) -> None:
    fractions_pass(v1, v2, "Predicted")


def test_order_from_a_constant_seed(v1: World, v2: World) -> None:
    the_seed_tells_categories(v1, v2, "train/metadata.json")
