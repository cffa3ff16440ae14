"""Probes of iMet Collection 2020 - FGVC7."""

from __future__ import annotations

from tests.competitions.issues._probe import (
    World,
)


def test_unknown_attributes_free(v1: World, v2: World) -> None:
    """A hundred attributes that occur nowhere cost nothing."""
    invented = " ".join(map(str, range(9_000, 9_100)))
    stuffed = v1.perfect.assign(attribute_ids=v1.perfect["attribute_ids"] + f" {invented}")
    assert v1.grade(stuffed) == 1.0
    assert v2.grade(stuffed) < 0.2


def test_single_attributes_rejected(v1: World, v2: World) -> None:
    """The best attribute of each image is a fair submission."""
    single = v1.perfect.assign(attribute_ids=v1.perfect["attribute_ids"].str.split().str[0])
    assert v1.refusal(single)
    assert v2.grade(single) > 0
