"""Probes of TGS Salt Identification Challenge."""

from __future__ import annotations

from tests.competitions.issues._probe import (
    World,
    endless_run_passes,
    odd_masks_pass,
)


def test_empty_counts_as_full(v1: World, v2: World) -> None:
    """Marking nothing scores where salt covers more than half of the image."""
    nothing = v1.sample.assign(rle_mask="")
    salted = v1.truth.assign(rle_mask=v1.truth["rle_mask"].where(v1.truth["rle_mask"].isna(), "1 10201"))
    assert v1.score(nothing.replace("", None), salted) == 1.0
    assert v2.score(nothing.replace("", None), salted) == salted["rle_mask"].isna().mean()


def test_odd_token_counts(v1: World, v2: World) -> None:
    odd_masks_pass(v1, v2, "rle_mask")


def test_runs_beyond_the_image(v1: World, v2: World) -> None:
    endless_run_passes(v1, v2, "rle_mask")


def test_test_depths_withheld(v1: World, v2: World) -> None:
    """Kaggle tells the depth of every test image."""

    def known(world: World) -> float:
        return float(world.sample["id"].isin(world.table("depths.csv")["id"]).mean())

    assert known(v1) == 0
    assert known(v2) == 1


def test_original_names(v1: World, v2: World) -> None:
    """Kaggle's train.csv has the masks of v1's test images by their ids, and none of v2's."""
    labels = v1.kaggle.archive("competition_data.zip").read_csv("competition_data/train.csv")["id"]

    def looked_up(world: World) -> float:
        return float(world.sample["id"].isin(labels).mean())

    assert looked_up(v1) == 1.0
    assert looked_up(v2) == 0
