"""Probes of PetFinder.my - Pawpularity Contest."""

from __future__ import annotations

from tests.competitions.issues._probe import World, copied_images, names_are_known, remade, shown_in_both


def test_duplicate_photographs(v1: World, v2: World) -> None:
    """The score of a test photograph is that of its copy, which was scaled and compressed anew."""
    worlds = remade(v1, copied_images(v1, "train/"))
    assert shown_in_both(worlds["v1"], "train", "test") > 0.5
    assert shown_in_both(worlds["v2"], "train", "test") == 0


def test_original_names(v1: World, v2: World) -> None:
    """Kaggle's train.csv has the labels of v1's test images by their names, and none of v2's."""
    names_are_known(v1, v2, "Id", v1.kaggle.read_csv("train.csv")["Id"])
