"""Probes of Bristol-Myers Squibb - Molecular Translation."""

from __future__ import annotations

from tests.competitions.issues._probe import (
    World,
)


def test_empty_is_nan(v1: World, v2: World) -> None:
    """An empty cell is compared as `nan`, and some letter of it is usually right."""
    blank = v1.perfect.assign(InChI="")
    nothing_right = v1.perfect["InChI"].str.len().mean()
    assert v1.grade(blank) < nothing_right
    assert v2.grade(blank) == nothing_right
