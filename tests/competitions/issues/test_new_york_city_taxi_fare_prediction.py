"""Probes of New York City Taxi Fare Prediction."""

from __future__ import annotations

from tests.competitions.issues._probe import (
    World,
)


def test_keys_not_compared(v1: World, v2: World) -> None:
    """A file about other rides passes."""
    invented = v1.sample.assign(key=[f"ride {number}" for number in range(len(v1.sample))])
    assert v1.accepts(invented)
    assert "unknown" in v2.refusal(invented)
