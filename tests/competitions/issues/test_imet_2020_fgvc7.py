"""Probes of iMet Collection 2020 - FGVC7."""

from __future__ import annotations

from tests.competitions.issues._probe import (
    World,
    names_are_known,
)


def test_unknown_attributes_free(v1: World, v2: World) -> None:
    """A hundred attributes that occur nowhere cost nothing."""
    invented = " ".join(map(str, range(9_000, 9_100)))
    stuffed = [
        world.perfect.assign(attribute_ids=world.perfect["attribute_ids"] + f" {invented}") for world in (v1, v2)
    ]
    assert v1.grade(stuffed[0]) == 1.0
    assert v2.grade(stuffed[1]) < 0.2


def test_single_attributes_rejected(v1: World, v2: World) -> None:
    """The best attribute of each image is a fair submission."""
    single = [
        world.perfect.assign(attribute_ids=world.perfect["attribute_ids"].str.split().str[0]) for world in (v1, v2)
    ]
    assert v1.refusal(single[0])
    assert v2.grade(single[1]) > 0


def test_original_names(v1: World, v2: World) -> None:
    """Kaggle's train.csv has the labels of v1's test images by their names, and none of v2's."""
    names_are_known(v1, v2, "id", v1.kaggle.read_csv("train.csv")["id"])
