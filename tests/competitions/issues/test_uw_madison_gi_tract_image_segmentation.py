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
    """In a wide image, an organ found eight pixels too far to the right counts as if it were one."""
    width, height = 40, 8
    slices = pd.DataFrame({"id": ["case1_day1_slice_0001"], "class": ["stomach"]})
    answers = slices.assign(predicted=runs(range(2, 5), width), image_width=width, image_height=height)
    right = slices.assign(predicted=runs(range(2, 5), width, first=9))
    assert v2.score(right, answers) == pytest.approx(0.4 * 0.2 + 0.6 * (1 - 8 / width / 3**0.5))
    assert v1.score(right, answers) == pytest.approx(0.4 * 0.2 + 0.6 * (1 - 1 / width / 3**0.5))


def runs(rows: range, width: int, first: int = 1) -> str:
    """Ten pixels of these rows from column `first` on, numbered row by row."""
    return " ".join(f"{row * width + first} 10" for row in rows)
