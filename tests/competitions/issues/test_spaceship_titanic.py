"""Probes of Spaceship Titanic."""

from __future__ import annotations

import io

import pandas as pd

from tests.competitions.issues._probe import (
    World,
    a_word_makes_everything_wrong,
    remade,
    table_bytes,
)


def test_features_in_answers(v1: World, v2: World) -> None:
    """Graders need one label; v1 gives them the features as well."""
    assert "Cabin" in v1.private_columns
    assert v2.private_columns == ["PassengerId", "Transported"]


def test_text_scores_zero(v1: World, v2: World) -> None:
    a_word_makes_everything_wrong(v1, v2, "Transported")


def test_groups_on_both_sides(v1: World, v2: World) -> None:
    """The fate of passengers is that of their family."""

    def families(content: bytes) -> bytes:
        table = pd.read_csv(io.BytesIO(content))
        groups = table.index // 4
        table["PassengerId"] = [f"{group:04}_{row % 4 + 1:02}" for row, group in enumerate(groups)]
        return table_bytes(table.assign(Transported=groups % 2 == 0))

    def right(world: World) -> float:
        train, sample = world.table("train.csv"), world.sample
        fates = dict(zip(train["PassengerId"].str[:4], train["Transported"], strict=True))
        return world.grade(sample.assign(Transported=sample["PassengerId"].str[:4].map(fates).eq(True)))

    worlds = remade(v1, {"train.csv": families})
    assert right(worlds["v1"]) > 0.9
    assert right(worlds["v2"]) < 0.7
