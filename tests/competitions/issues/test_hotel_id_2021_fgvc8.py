"""Probes of Hotel-ID to Combat Human Trafficking 2021 - FGVC8."""

from __future__ import annotations

import pytest

from tests.competitions.issues._probe import (
    World,
    cell,
    names_are_known,
)


def test_single_ids_with_gap(v1: World, v2: World) -> None:
    """One hotel left open makes all others wrong."""
    rows = len(v1.perfect)
    assert v1.grade(v1.perfect) == 1.0
    assert v1.grade(cell(v1.perfect, "hotel_id", "")) == 0.0
    assert v2.grade(cell(v2.perfect, "hotel_id", "")) == pytest.approx((rows - 1) / rows)


def test_original_names(v1: World, v2: World) -> None:
    """Kaggle's train.csv has the labels of v1's test images by their names, and none of v2's."""
    names_are_known(v1, v2, "image", v1.kaggle.read_csv("train.csv")["image"])
