"""Probes of iNaturalist 2019 at FGVC6."""

from __future__ import annotations

import json
import tarfile

from tests.competitions.issues._probe import (
    World,
    the_seed_tells_categories,
)


def test_validation_images_missing(v1: World, v2: World) -> None:
    """Who validates on val2019.json finds none of its images in v1."""

    def present(world: World) -> float:
        listed = json.loads((world.public / "val2019.json").read_text())["images"]
        with tarfile.open(world.public / "train_val2019.tar.gz") as archive:
            names = set(archive.getnames())
        return sum(image["file_name"].removeprefix("train_val2019/") in names for image in listed) / len(listed)

    assert present(v1) == 0
    assert present(v2) == 1


def test_constant_sample(v1: World, v2: World) -> None:
    """The sample submission was meant to hold random guesses."""
    assert v1.sample["predicted"].nunique() == 1
    assert v2.sample["predicted"].nunique() > 1


def test_order_from_a_constant_seed(v1: World, v2: World) -> None:
    the_seed_tells_categories(v1, v2, "train2019.json")
