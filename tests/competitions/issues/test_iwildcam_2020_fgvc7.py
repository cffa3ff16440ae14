"""Probes of iWildCam 2020 - FGVC7."""

from __future__ import annotations

from tests.competitions.issues._probe import (
    World,
    a_word_makes_everything_wrong,
)


def test_test_share(v1: World, v2: World) -> None:
    """The test set was meant to have at most 22 % of the images."""

    def share(world: World) -> float:
        test, train = (len(list((world.public / part).iterdir())) for part in ("test", "train"))
        return test / (test + train)

    assert share(v1) > 0.22
    assert share(v2) <= 0.22


def test_text_scores_zero(v1: World, v2: World) -> None:
    a_word_makes_everything_wrong(v1, v2, "Category")
