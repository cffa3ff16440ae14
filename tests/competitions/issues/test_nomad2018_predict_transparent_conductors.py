"""Probes of Nomad2018 Predicting Transparent Conductors."""

from __future__ import annotations

from tests.competitions.issues._probe import (
    World,
)


def test_ids_ignored(v1: World, v2: World) -> None:
    """Right predictions, each with its id, are wrong from the end to the beginning; ids of nothing pass."""
    assert v1.grade(v1.perfect) == v2.grade(v2.perfect[::-1]) == 0
    assert v1.grade(v1.perfect[::-1]) > 0.01
    assert v1.accepts(v1.sample.assign(id=-1))
    assert v2.refusal(v2.sample.assign(id=-1))
