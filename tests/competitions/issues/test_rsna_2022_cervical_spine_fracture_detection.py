"""Probes of RSNA 2022 Cervical Spine Fracture Detection."""

from __future__ import annotations

from pathlib import PurePosixPath

import pytest

from tests.competitions.issues._probe import (
    World,
    remade,
    table_bytes,
)

UID = "StudyInstanceUID"


def test_train_and_test_swapped(v1: World, v2: World) -> None:
    """Agents learn from a tenth of the studies and are tested with nine tenths."""

    def train_share(world: World) -> float:
        train, test = (world.table(name)[UID].nunique() for name in ("train.csv", "test.csv"))
        return train / (train + test)

    assert train_share(v1) == pytest.approx(0.1, abs=0.02)
    assert train_share(v2) == pytest.approx(0.9, abs=0.02)


def test_withheld_annotations(v1: World, v2: World) -> None:
    """Boxes and segmentations of training studies stay in the archive."""
    boxed = set(v1.kaggle.read_csv("train_bounding_boxes.csv")[UID])
    segmented = {PurePosixPath(name).stem for name in v1.kaggle.glob("segmentations/*.nii")}

    def withheld(world: World, train: set[str]) -> int:
        shown = set(world.table("train_bounding_boxes.csv")[UID])
        masks = {path.stem for path in (world.public / "segmentations").iterdir()}
        return len(boxed & train - shown) + len(segmented & train - masks)

    # Studies of the fourth draw are neither boxed nor segmented in the miniature, so all studies get a box here.
    everything = v1.kaggle.read_csv("train.csv")[[UID]].assign(x=1.0, y=1.0, width=1.0, height=1.0, slice_number=1)
    half = everything[: len(everything) // 2]
    worlds = remade(v1, {"train_bounding_boxes.csv": table_bytes(half)})
    boxed = set(half[UID])
    assert withheld(worlds["v1"], set(worlds["v1"].table("train.csv")[UID])) > 0
    assert withheld(worlds["v2"], set(worlds["v2"].table("train.csv")[UID])) == 0
