"""Probes of TensorFlow 2.0 Question Answering."""

from __future__ import annotations

import pytest

from tests.competitions.issues._probe import (
    World,
)


def test_micro_f1_is_accuracy(v1: World, v2: World) -> None:
    """Saying nothing scores the share of questions without an answer."""
    blank = v1.sample.assign(PredictionString="")
    assert v1.grade(blank) == pytest.approx(1 - v1.truth["right"].astype(bool).mean())
    assert v1.grade(blank) > 0.2
    assert v2.grade(blank) == 0
