"""Probes of UW-Madison GI Tract Image Segmentation."""

from __future__ import annotations

import pandas as pd
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


def test_pixel_order(v1: World, v2: World) -> None:
    """In an image that is no square, an organ found one pixel too low is as far away as one at the other end."""
    width, height = 40, 8
    slices = pd.DataFrame({"id": ["case1_day1_slice_0001"], "class": ["stomach"]})
    answers = slices.assign(predicted=runs(range(2, 5), width), image_width=width, image_height=height)
    lower = slices.assign(predicted=runs(range(3, 6), width))
    overlap = 0.4 * 2 / 3
    assert v2.score(lower, answers) == pytest.approx(overlap + 0.6 * (1 - 1 / height / 3**0.5))
    assert v1.score(lower, answers) < v2.score(lower, answers) - 0.05


def runs(rows: range, width: int) -> str:
    """The first ten pixels of these rows, numbered row by row."""
    return " ".join(f"{row * width + 1} 10" for row in rows)
