"""Probes of Jigsaw Unintended Bias in Toxicity Classification."""

from __future__ import annotations

import pandas as pd
import pytest

from tests.competitions.issues._probe import (
    World,
)


def perfect(world: World) -> pd.DataFrame:
    return world.truth[["id"]].assign(prediction=world.truth["toxicity"])


def test_thresholded_predictions(v1: World, v2: World) -> None:
    """A model that ranks all comments rightly, but calls none more toxic than 0.4, is as good as none in v1."""
    cautious = perfect(v1).assign(prediction=perfect(v1)["prediction"] * 0.4)
    assert v1.grade(cautious) == pytest.approx(0.5)
    assert v2.grade(cautious) == pytest.approx(v2.grade(perfect(v2)))
    assert v2.grade(cautious) > 0.99


def test_empty_predictions(v1: World, v2: World) -> None:
    """Who leaves all innocent comments blank has done the same as who scored them."""
    gaps = perfect(v1).assign(prediction=lambda rows: rows["prediction"].where(rows["prediction"] >= 0.5))
    assert v1.grade(gaps) == v1.grade(perfect(v1))
    assert "empty" in v2.refusal(gaps)
