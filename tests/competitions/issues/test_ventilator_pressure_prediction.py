"""Probes of Google Brain - Ventilator Pressure Prediction."""

from __future__ import annotations

from tests.competitions.issues._probe import (
    World,
)


def test_unscored_rows_unchecked(v1: World, v2: World) -> None:
    """Half of the rows may be left blank."""
    blank = v1.perfect.assign(pressure=v1.perfect["pressure"].where((v1.truth["u_out"] == 0).to_numpy(), ""))
    assert v1.grade(blank) == 0
    assert "empty" in v2.refusal(blank[["id", "pressure"]])
