"""Probes of SETI Breakthrough Listen - E.T. Signal Search."""

from __future__ import annotations

import pandas as pd

from tests.competitions.issues._probe import World, names_are_known, remade, table_bytes


def test_old_data_public(v1: World, v2: World) -> None:
    """If the recordings of the first start are those of the second, their labels are published under other names."""
    labels = v1.kaggle.read_csv("train_labels.csv")
    old = {f"old_leaky_data/train_old/{name}.npy": recording(v1, name) for name in labels["id"]}
    names = table_bytes(labels)
    for edition, world in remade(v1, {**old, "old_leaky_data/train_labels_old.csv": names}).items():
        known = {path.read_bytes() for path in (world.public / "old_leaky_data/train_old").rglob("*.npy")}
        found = pd.Series([path.read_bytes() in known for path in (world.public / "test").rglob("*.npy")])
        assert found.all() == (edition == "v1")
        assert found.any() == (edition == "v1")


def recording(world: World, name: str) -> bytes:
    with world.kaggle.open_file(f"train/{name[0]}/{name}.npy") as file:
        return file.read()


def test_original_names(v1: World, v2: World) -> None:
    """Kaggle's train_labels.csv has the labels of v1's test recordings by their names, and none of v2's."""
    names_are_known(v1, v2, "id", v1.kaggle.read_csv("train_labels.csv")["id"])
