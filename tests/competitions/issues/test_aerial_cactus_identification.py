"""Probes of Aerial Cactus Identification."""

from __future__ import annotations

from tests.competitions.issues._probe import (
    World,
    names_are_known,
)


def test_original_names(v1: World, v2: World) -> None:
    """Kaggle's train.csv has the labels of v1's test images by their names, and none of v2's."""
    names_are_known(v1, v2, "id", v1.kaggle.read_csv("train.csv")["id"])
