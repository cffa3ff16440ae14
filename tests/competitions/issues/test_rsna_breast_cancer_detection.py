"""Probes of RSNA Screening Mammography Breast Cancer Detection."""

from __future__ import annotations

from tests.competitions.issues._probe import (
    World,
    cell,
)


def test_missing_scores_zero(v1: World, v2: World) -> None:
    """One blank cell, and everything else counts for nothing."""
    assert v1.grade(v1.perfect) == 1.0
    assert v1.grade(cell(v1.perfect, "cancer", "")) == 0.0
    assert "empty" in v2.refusal(cell(v2.perfect, "cancer", ""))


def test_infinite_predictions(v1: World, v2: World) -> None:
    """More certain than certain is certain."""
    assert v1.grade(cell(v1.perfect, "cancer", "inf", 1)) <= 1
    assert "infinite" in v2.refusal(cell(v2.perfect, "cancer", "inf", 1))
