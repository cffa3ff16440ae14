"""Probes of 1st and Future - Player Contact Detection."""

from __future__ import annotations

import re

from tests.competitions.issues._probe import World, cell, remade


def test_further_classes(v1: World, v2: World) -> None:
    """2 is neither contact nor no contact, but a class of its own."""
    perfect = v1.perfect[["contact_id", "contact"]]
    assert v1.accepts(cell(perfect, "contact", 2))
    assert "outside [0, 1]" in v2.refusal(cell(perfect, "contact", 2))


def test_games_on_both_sides(v1: World, v2: World) -> None:
    """The players and the light of a test play are known from other plays of the game."""

    def in_four_games(text: str) -> str:
        return re.sub(r"(\d{5})_(\d{6})", lambda play: f"5800{int(play[1]) % 4}_{play[2]}", text)

    tables = {name: in_four_games(v1.kaggle.read_text(name)).encode() for name in v1.kaggle.glob("train_*.csv")}
    videos = {in_four_games(name): v1.kaggle.read_bytes(name) for name in v1.kaggle.names("train")}
    worlds = remade(v1, {**tables, **videos})

    def known(world: World) -> float:
        tables = [world.table(f"{part}_video_metadata.csv")["game_play"] for part in ("train", "test")]
        train, test = (plays.str.partition("_")[0] for plays in tables)
        return float(test.isin(train).mean())

    assert known(worlds["v1"]) == 1
    assert known(worlds["v2"]) == 0
