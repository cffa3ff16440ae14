"""Probes of Multi-modal Gesture Recognition."""

from __future__ import annotations

import pytest

from tests.competitions.issues._probe import (
    World,
    cell,
)


def test_no_empty_sequence(v1: World, v2: World) -> None:
    """Nothing found in a recording is an answer; it costs as many edits as there are gestures."""
    gestures = v1.perfect["Sequence"].str.split().str.len()
    nothing = cell(v1.perfect, "Sequence", "")
    assert v1.refusal(nothing)
    assert v2.grade(nothing) == pytest.approx(gestures[0] / gestures.sum())
