"""Probes of 1st and Future - Player Contact Detection."""

from __future__ import annotations

from tests.competitions.issues._probe import (
    World,
    cell,
)


def test_further_classes(v1: World, v2: World) -> None:
    """2 is neither contact nor no contact, but a class of its own."""
    perfect = v1.perfect[["contact_id", "contact"]]
    assert v1.accepts(cell(perfect, "contact", 2))
    assert "outside [0, 1]" in v2.refusal(cell(perfect, "contact", 2))
