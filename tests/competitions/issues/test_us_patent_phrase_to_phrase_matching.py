"""Probes of U.S. Patent Phrase to Phrase Matching."""

from __future__ import annotations

import io
import math

import pandas as pd

from tests.competitions.issues._probe import (
    World,
    cell,
    remade,
    table_bytes,
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


def test_anchors_on_both_sides(v1: World, v2: World) -> None:
    """What is similar to a phrase is known from other pairs of the phrase."""

    def four_pairs_each(content: bytes) -> bytes:
        table = pd.read_csv(io.BytesIO(content))
        return table_bytes(table.assign(anchor=[f"anchor {row // 4}" for row in range(len(table))]))

    worlds = remade(v1, {"train.csv": four_pairs_each})
    assert worlds["v1"].shared("train.csv", "test.csv", "anchor") > 0.5
    assert worlds["v2"].shared("train.csv", "test.csv", "anchor") == 0
