"""Probes of INGV - Volcanic Eruption Prediction."""

from __future__ import annotations

import pandas as pd
import pytest

from tests.competitions.issues._probe import (
    World,
)

TARGET = "time_to_eruption"


def test_rounded_score(v1: World, v2: World) -> None:
    """Errors below a half are none, and models that differ by less have the same score."""
    near = v1.perfect.assign(**{TARGET: v1.perfect[TARGET].astype(float) + 0.4})
    assert v1.grade(near) == 0
    assert v2.grade(near) == pytest.approx(0.4)


def test_repeated_ids(v1: World, v2: World) -> None:
    """Segments of which an agent is sure, a thousand times each, outweigh the others."""
    sure = v1.perfect[:1]
    stuffed = pd.concat([v1.sample, *[sure] * 1_000])
    assert v1.grade(stuffed) < v1.grade(v1.sample) / 50
    assert v2.refusal(stuffed)
