"""Probes of Plant Pathology 2021 - FGVC8."""

from __future__ import annotations

from tests.competitions.issues._probe import (
    World,
)


def test_unknown_labels_free(v1: World, v2: World) -> None:
    """Twenty invented diseases for each leaf cost nothing."""
    invented = " ".join(f"blight-{number}" for number in range(20))
    stuffed = v1.perfect.assign(labels=v1.perfect["labels"] + f" {invented}")
    assert v1.grade(stuffed) == v2.grade(v2.perfect) == 1.0
    assert v2.grade(stuffed) < 0.2


def test_published_header(v1: World, v2: World) -> None:
    """Who follows Kaggle's text writes `image, labels`. Ours, in both editions, shows the header that counts."""
    for world in (v1, v2):
        example = world.prepared.competition.description.split("```")[1].strip().splitlines()[0]
        assert world.accepts(world.sample.set_axis(example.split(","), axis=1))
        assert world.refusal(world.sample.set_axis(["image", " labels"], axis=1))
