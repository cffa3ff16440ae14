"""Probes of Freesound Audio Tagging 2019."""

from __future__ import annotations

from tests.competitions.issues._probe import (
    World,
)


def test_class_order(v1: World, v2: World) -> None:
    """The right scores under the right names, written in another order, are refused."""
    turned = v1.perfect[v1.perfect.columns[::-1]]
    assert v1.refusal(turned)
    assert v2.grade(turned) == v2.grade(v2.perfect) == 1.0
