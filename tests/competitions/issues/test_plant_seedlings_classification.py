"""Probes of Plant Seedlings Classification."""

from __future__ import annotations

from pathlib import PurePosixPath

import numpy as np

from tests.competitions.issues._probe import (
    World,
    cell,
    drawn_places,
    known_by_place,
    shuffled_anew,
)


def test_any_text_accepted(v1: World, v2: World) -> None:
    """Plants that do not exist pass, and images without a label."""
    for value in ("cat", ""):
        assert v1.accepts(cell(v1.perfect, "species", value)), value
        assert "species" in v2.refusal(cell(v2.perfect, "species", value)), value


def test_original_names(v1: World, v2: World) -> None:
    """Kaggle's folders of species contain the names of v1's test images, and none of v2's."""
    species = {PurePosixPath(name).name: name.split("/")[1] for name in v1.kaggle.glob("train/*/*.png")}

    def looked_up(world: World) -> float:
        return float(np.mean([species.get(name) is not None for name in world.sample["file"]]))

    assert v1.grade(v1.sample.assign(species=v1.sample["file"].map(species))) == 1.0
    assert looked_up(v2) == 0


def test_published_probability(v1: World, v2: World) -> None:
    """An agent that follows Kaggle's text predicts a probability; ours asks for names, in both editions."""
    for world in (v1, v2):
        assert "probabilit" not in world.prepared.competition.description
        assert world.refusal(world.sample.assign(species=0.5))


def test_order_from_a_constant_seed(v1: World, v2: World) -> None:
    """Places in the sorted folders of species tell the species."""
    places = drawn_places(len(v1.kaggle.glob("train/*/*.png")), test_size=0.14)
    assert known_by_place(v1, places) == 1.0
    assert known_by_place(v2, places) < 0.5
    assert known_by_place(v2, shuffled_anew(places)) < 0.5
