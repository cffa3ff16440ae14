"""Probes of Predicting Molecular Properties."""

from __future__ import annotations

import math

import pandas as pd
import pytest

from tests.competitions.issues._probe import (
    World,
)

TARGET = "scalar_coupling_constant"


def test_test_geometry_missing(v1: World, v2: World) -> None:
    """The coupling of two atoms depends on where they are, which v1 does not say for a single test pair."""

    def without_geometry(world: World) -> float:
        molecules, known = world.table("test.csv")["molecule_name"], world.table("structures.csv")["molecule_name"]
        files = {path.stem for path in (world.public / "structures").iterdir()}
        return float((~molecules.isin(known) | ~molecules.isin(files)).mean())

    assert without_geometry(v1) == 1
    assert without_geometry(v2) == 0


def test_no_floor(v1: World, v2: World) -> None:
    """One type without an error makes everything else worthless: the score is minus infinity."""
    test = v1.table("test.csv").set_index("id")
    types = v1.sample["id"].astype(int).map(test["type"])
    rare = types.value_counts().index[-1]
    guess = v1.sample.assign(**{TARGET: v1.perfect[TARGET].astype(float).where(types == rare, 1e6)})
    assert v1.grade(guess) == -math.inf
    assert v2.grade(guess) > 0
    assert v2.grade(v2.perfect) == pytest.approx(math.log(1e-9))


def test_repeated_ids(v1: World, v2: World) -> None:
    """Rows of which an agent is sure, a thousand times each, outweigh the others."""
    honest = v1.perfect.assign(**{TARGET: v1.perfect[TARGET].astype(float) + 1})
    sure = honest.assign(**{TARGET: honest[TARGET] - 0.999}).groupby(v1.truth["type"].to_numpy()).head(1)
    stuffed = pd.concat([honest.drop(sure.index), *[sure] * 1_000])
    assert v1.grade(stuffed) < v1.grade(honest) - 1
    assert v2.refusal(stuffed)
