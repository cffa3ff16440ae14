"""Probes of VinBigData Chest X-ray Abnormalities Detection."""

from __future__ import annotations

import pandas as pd
import pytest

from tests.competitions.issues._probe import (
    World,
)


def test_corners_as_sizes(v1: World, v2: World) -> None:
    """A box beside the finding, which does not touch it, finds it."""
    answers = one_finding(900, 900, 1_000, 1_000)
    beside = answers[["image_id"]].drop_duplicates().assign(PredictionString="3 0.9 1010 1010 1110 1110")
    assert v1.score(beside, answers) > 0.3
    assert v2.score(beside, answers) == 0


def one_finding(*corners: int) -> pd.DataFrame:
    """Four images with a box of class 3 at the same place."""
    box = dict(zip(["x_min", "y_min", "x_max", "y_max"], corners, strict=True))
    return pd.DataFrame({"image_id": list("abcd"), "class_id": 3, **box})


def test_ids_from_zero(v1: World, v2: World) -> None:
    """Nobody can find the first answer, so even the truth is not perfect."""
    answers = one_finding(10, 10, 50, 50)
    truth = answers[["image_id"]].assign(PredictionString="3 0.9 10 10 50 50")
    assert v1.score(truth, answers) < 0.9
    assert v2.score(truth, answers) == pytest.approx(1)


def test_repeated_images(v1: World, v2: World) -> None:
    """An image given twice has twice the guesses."""
    twice = pd.concat([v1.sample, v1.sample[:1]])
    assert v1.accepts(twice)
    assert "rows" in v2.refusal(twice)


def test_not_kaggles_metric(v1: World, v2: World) -> None:
    """A box that reaches an overlap of 0.4, and does not exceed it, is a hit."""
    answers = one_finding(0, 0, 10, 10)
    part = answers[["image_id"]].assign(PredictionString="3 0.9 0 0 4 10")
    assert v1.score(part, answers) > 0.5
    assert v2.score(part, answers) == 0


def test_inverted_boxes_free(v1: World, v2: World) -> None:
    """Boxes from right to left, guessed before the finding, cost nothing."""
    answers = one_finding(10, 10, 50, 50)
    truth = answers[["image_id"]].assign(PredictionString="3 0.5 10 10 50 50")
    stuffed = truth.assign(PredictionString="3 0.9 50 10 10 50 3 0.9 50 10 10 50 " + truth["PredictionString"])
    assert v1.score(stuffed, answers) == v1.score(truth, answers) > 0.5
    assert v2.score(stuffed, answers) < v2.score(truth, answers) / 2
