"""Probes of Plant Pathology 2020 - FGVC7."""

from __future__ import annotations

from tests.competitions.issues._probe import (
    World,
)


def test_published_column_names(v1: World, v2: World) -> None:
    """Who follows Kaggle's text names a column `combinations`. Ours, in both editions, names those that count."""
    for world in (v1, v2):
        example = world.prepared.competition.description.split("```")[1].split()[0]
        assert list(world.sample) == example.split(",")
        assert world.refusal(world.sample.rename(columns={"multiple_diseases": "combinations"}))
