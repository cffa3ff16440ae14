"""Probes of APTOS 2019 Blindness Detection."""

from __future__ import annotations

from tests.competitions.issues._probe import (
    World,
    cell,
)


def test_grades_by_position(v1: World, v2: World) -> None:
    """A grade that does not exist counts as one step above the highest, whatever the number."""
    attempts = [cell(v1.perfect, "diagnosis", grade) for grade in (5, 9, 1_000)]
    assert len({v1.grade(attempt) for attempt in attempts}) == 1
    assert all("outside [0, 4]" in v2.refusal(attempt) for attempt in attempts)
