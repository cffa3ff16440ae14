"""Probes of SIIM-FISABIO-RSNA COVID-19 Detection."""

from __future__ import annotations

from tests.competitions.issues._probe import World


def test_own_average_precision(v1: World, v2: World) -> None:
    """Boxes that hit nothing are worth the share of the true boxes among all rows."""
    nothing = v1.sample.assign(PredictionString="opacity 0.5 9000 9000 9001 9001")
    assert v1.grade(nothing) > 0
    assert v2.grade(nothing) == 0
    assert v1.grade(v1.perfect) == v2.grade(v2.perfect) == 1
