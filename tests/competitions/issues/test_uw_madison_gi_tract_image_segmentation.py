"""Probes of UW-Madison GI Tract Image Segmentation."""

from __future__ import annotations

import pytest

from tests.competitions.issues._probe import (
    World,
    endless_run_passes,
    odd_masks_pass,
)


def test_rows_matched_by_position(v1: World, v2: World) -> None:
    """Rows about the slices that are hardest may be left out, and ids may be anything."""
    half = v1.sample[: len(v1.sample) // 2]
    assert v1.accepts(half)
    assert "rows" in v2.refusal(half)
    assert v1.accepts(v1.sample.assign(**{"class": "cat"}))
    assert v2.refusal(v2.sample.assign(**{"class": "cat"}))
    assert v2.grade(v2.perfect[::-1]) == pytest.approx(v2.grade(v2.perfect))


def test_odd_token_counts(v1: World, v2: World) -> None:
    odd_masks_pass(v1, v2, "predicted")


def test_runs_beyond_the_image(v1: World, v2: World) -> None:
    endless_run_passes(v1, v2, "predicted")
