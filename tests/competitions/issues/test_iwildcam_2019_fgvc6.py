"""Probes of iWildCam 2019 - FGVC6."""

from __future__ import annotations

import io

import numpy as np
import pandas as pd

from tests.competitions.issues._probe import (
    World,
    cell,
    remade,
    table_bytes,
)


def test_index_in_sample(v1: World, v2: World) -> None:
    """Where Kaggle's file is sorted by category, the positions of test rows lie among train rows of their category."""

    def by_category(content: bytes) -> bytes:
        return table_bytes(pd.read_csv(io.BytesIO(content)).sort_values("category_id", kind="stable"))

    def right(world: World) -> float:
        sample, train = world.table("sample_submission.csv"), world.table("train.csv")
        if "Unnamed: 0" not in sample:
            return world.grade(sample)
        positions = sample["Unnamed: 0"].to_numpy()
        others = np.setdiff1d(np.arange(len(sample) + len(train)), positions)  # train.csv keeps the order of the file
        nearest = np.abs(positions[:, None] - others[None, :]).argmin(axis=1)
        return world.grade(sample.assign(Category=train["category_id"].to_numpy()[nearest])[["Id", "Category"]])

    worlds = remade(v1, {"train.csv": by_category})
    assert right(worlds["v1"]) > 0.7
    assert right(worlds["v2"]) < 0.3


def test_unknown_classes_accepted(v1: World, v2: World) -> None:
    """Classes that do not exist, and halves of classes, pass."""
    for value in ("999", "-3", "2.5"):
        assert v1.accepts(cell(v1.perfect, "Category", value)), value
        assert "Category" in v2.refusal(cell(v2.perfect, "Category", value)), value
