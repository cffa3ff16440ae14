"""Probes of INGV - Volcanic Eruption Prediction."""

from __future__ import annotations

import pandas as pd
import pytest

from tests.competitions.issues._probe import (
    World,
    names_are_known,
)

TARGET = "time_to_eruption"


def test_rounded_score(v1: World, v2: World) -> None:
    """Errors below a half are none, and models that differ by less have the same score."""
    near = [world.perfect.assign(**{TARGET: world.perfect[TARGET].astype(float) + 0.4}) for world in (v1, v2)]
    assert v1.grade(near[0]) == 0
    assert v2.grade(near[1]) == pytest.approx(0.4)


def test_repeated_ids(v1: World, v2: World) -> None:
    """Segments of which an agent is sure, a thousand times each, outweigh the others."""
    stuffed = [pd.concat([world.sample, *[world.perfect[:1]] * 1_000]) for world in (v1, v2)]
    assert v1.grade(stuffed[0]) < v1.grade(v1.sample) / 50
    assert v2.refusal(stuffed[1])


def test_original_names(v1: World, v2: World) -> None:
    """Kaggle's train.csv has the labels of v1's test recordings by their names, and none of v2's."""
    names_are_known(v1, v2, "segment_id", v1.kaggle.read_csv("train.csv", dtype={"segment_id": str})["segment_id"])
