"""Probes of U.S. Patent Phrase to Phrase Matching."""

from __future__ import annotations

import math

from tests.competitions.issues._probe import (
    World,
    cell,
)


def test_nan_scores(v1: World, v2: World) -> None:
    """One blank cell, and the run has no score."""
    for world in (v1, v2):
        blank = cell(world.perfect[["id", "score"]], "score", "")
        assert math.isnan(world.grade(blank)) if world is v1 else "empty" in world.refusal(blank)


def test_sample_without_score(v1: World, v2: World) -> None:
    """The example that agents start from has no score."""
    assert math.isnan(v1.grade(v1.sample))
    assert v2.grade(v2.sample) == 0
