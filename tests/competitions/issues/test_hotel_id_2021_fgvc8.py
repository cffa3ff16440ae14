"""Probes of Hotel-ID to Combat Human Trafficking 2021 - FGVC8."""

from __future__ import annotations

import pytest

from tests.competitions.issues._probe import (
    World,
    cell,
)


def test_single_ids_with_gap(v1: World, v2: World) -> None:
    """One hotel left open makes all others wrong."""
    rows = len(v1.perfect)
    assert v1.grade(v1.perfect) == 1.0
    assert v1.grade(cell(v1.perfect, "hotel_id", "")) == 0.0
    assert v2.grade(cell(v2.perfect, "hotel_id", "")) == pytest.approx((rows - 1) / rows)
