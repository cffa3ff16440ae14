"""Probes of Humpback Whale Identification Challenge."""

from __future__ import annotations

from tests.competitions.issues._probe import (
    World,
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
