"""Probes of Plant Pathology 2021 - FGVC8."""

from __future__ import annotations

import pandas as pd

from tests.competitions.issues._probe import (
    World,
    copied_images,
    names_are_known,
    remade,
    shown_in_both,
)


def test_unknown_labels_free(v1: World, v2: World) -> None:
    """Twenty invented diseases for each leaf cost nothing."""
    invented = " ".join(f"blight-{number}" for number in range(20))
    stuffed = [world.perfect.assign(labels=world.perfect["labels"] + f" {invented}") for world in (v1, v2)]
    assert v1.grade(stuffed[0]) == v2.grade(v2.perfect) == 1.0
    assert v2.grade(stuffed[1]) < 0.2


def test_published_header(v1: World, v2: World) -> None:
    """Who follows Kaggle's text writes `image, labels`. Ours, in both editions, shows the header that counts."""
    for world in (v1, v2):
        example = world.prepared.competition.description.split("```")[1].strip().splitlines()[0]
        assert world.accepts(world.sample.set_axis(example.split(","), axis=1))
        assert world.refusal(world.sample.set_axis(["image", " labels"], axis=1))


def test_micro_average(v1: World, v2: World) -> None:
    """Looking at leaves with several diseases pays more in v1 than their share of the pictures."""
    answers = pd.DataFrame({"image": list("abcd"), "labels": ["scab rust complex", "scab", "rust", "scab"]})
    guess = answers.assign(labels=["scab rust complex", "rust", "scab", "rust"])
    assert v1.score(guess, answers) == 0.5
    assert v2.score(guess, answers) == 0.25


def test_duplicate_images(v1: World, v2: World) -> None:
    """The labels of a test image are those of its copy, which was scaled and compressed anew."""
    worlds = remade(v1, copied_images(v1, "train_images/"))
    assert shown_in_both(worlds["v1"], "train_images", "test_images") > 0.5
    assert shown_in_both(worlds["v2"], "train_images", "test_images") == 0


def test_original_names(v1: World, v2: World) -> None:
    """Kaggle's train.csv has the labels of v1's test images by their names, and none of v2's."""
    names_are_known(v1, v2, "image", v1.kaggle.read_csv("train.csv")["image"])
