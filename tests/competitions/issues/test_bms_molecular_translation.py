"""Probes of Bristol-Myers Squibb - Molecular Translation."""

from __future__ import annotations

from tests.competitions.issues._probe import (
    World,
    names_are_known,
)


def test_empty_is_nan(v1: World, v2: World) -> None:
    """An empty cell is compared as `nan`, and some letter of it is usually right."""
    nothing_right = v1.perfect["InChI"].str.len().mean()
    assert v1.grade(v1.perfect.assign(InChI="")) < nothing_right
    assert v2.grade(v2.perfect.assign(InChI="")) == nothing_right


def test_original_names(v1: World, v2: World) -> None:
    """Kaggle's train_labels.csv has the labels of v1's test images by their names, and none of v2's."""
    names_are_known(v1, v2, "image_id", v1.kaggle.read_csv("train_labels.csv")["image_id"])
