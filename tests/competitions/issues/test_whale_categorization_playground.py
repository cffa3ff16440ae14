"""Probes of Humpback Whale Identification Challenge."""

from __future__ import annotations

from tests.competitions.issues._probe import (
    World,
    copied_images,
    remade,
    shown_in_both,
)


def test_original_names(v1: World, v2: World) -> None:
    """Kaggle's train.csv has the names of v1's test images, and none of v2's."""
    whales = v1.kaggle.read_csv("train.csv").set_index("Image")["Id"]

    def looked_up(world: World) -> float:
        found = world.sample["Image"].map(whales)
        known = found.where(found.isin(world.table("train.csv")["Id"]), "new_whale")
        return world.grade(world.sample.assign(Id=known.where(found.notna(), "nobody")))

    assert looked_up(v1) == 1.0
    assert looked_up(v2) == 0


def test_copies_on_both_sides(v1: World, v2: World) -> None:
    """The whale in a test photograph is that of its copy, which was scaled and compressed anew."""
    worlds = remade(v1, copied_images(v1, "train/"))
    assert shown_in_both(worlds["v1"], "train", "test") > 0.5
    assert shown_in_both(worlds["v2"], "train", "test") == 0
    whales = set(worlds["v2"].table("train.csv")["Id"])
    assert set(worlds["v2"].truth["Id"]) <= whales | {"new_whale"}
