"""Probes of Histopathologic Cancer Detection."""

from __future__ import annotations

from tests.competitions.issues._probe import (
    World,
)


def test_original_names(v1: World, v2: World) -> None:
    """Kaggle's list of labels has the names of v1's test images, and none of v2's."""
    labels = v1.kaggle.read_csv("train_labels.csv").set_index("id")["label"]

    def looked_up(world: World) -> float:
        return world.grade(world.sample.assign(label=world.sample["id"].map(labels).fillna(0.5)))

    assert looked_up(v1) == 1.0
    assert looked_up(v2) == 0.5
