"""Probes of Vesuvius Challenge - Ink Detection."""

from __future__ import annotations

from tests.competitions.issues._probe import (
    World,
    endless_run_passes,
    odd_masks_pass,
)


def test_odd_token_counts(v1: World, v2: World) -> None:
    odd_masks_pass(v1, v2, "Predicted", ("1 2 3",))


def test_runs_beyond_the_image(v1: World, v2: World) -> None:
    endless_run_passes(v1, v2, "Predicted")
