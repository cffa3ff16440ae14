"""Probes of PetFinder.my - Pawpularity Contest."""

from __future__ import annotations

from tests.competitions.issues._probe import World, copied_images, remade, shown_in_both


def test_duplicate_photographs(v1: World, v2: World) -> None:
    """The score of a test photograph is that of its copy, which was scaled and compressed anew."""
    worlds = remade(v1, copied_images(v1, "train/"))
    assert shown_in_both(worlds["v1"], "train", "test") > 0.5
    assert shown_in_both(worlds["v2"], "train", "test") == 0
