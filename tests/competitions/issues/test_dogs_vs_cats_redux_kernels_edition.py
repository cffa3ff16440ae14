"""Probes of Dogs vs. Cats Redux: Kernels Edition."""

from __future__ import annotations

import zipfile
from collections import Counter
from pathlib import PurePosixPath

from tests.competitions.issues._probe import (
    World,
    drawn_places,
    known_by_place,
    shuffled_anew,
)


def test_images_twice(v1: World, v2: World) -> None:
    """Agents read each image from the folder or from the zip; v1 makes them store both."""

    def copies(world: World) -> Counter[str]:
        packed = [
            f"{path.stem}/{PurePosixPath(name).name}"
            for path in world.public.glob("*.zip")
            for name in zipfile.ZipFile(path).namelist()
        ]
        return Counter([*packed, *(f"{path.parent.name}/{path.name}" for path in world.public.glob("*/*.jpg"))])

    assert set(copies(v1).values()) == {2}
    assert set(copies(v2).values()) == {1}
    assert copies(v1).keys() == copies(v2).keys()


def test_order_from_a_constant_seed(v1: World, v2: World) -> None:
    """Places in the sorted names of all images tell cats from dogs."""
    places = drawn_places(len(v1.kaggle.archive("train.zip").glob("train/*.jpg")), test_size=0.1)
    assert known_by_place(v1, places) == 1.0
    assert known_by_place(v2, places) < 0.8
    assert known_by_place(v2, shuffled_anew(places)) < 0.8
