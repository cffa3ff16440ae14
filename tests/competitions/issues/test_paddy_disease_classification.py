"""Probes of "Paddy Doctor: Paddy Disease Classification"."""

from __future__ import annotations

from tests.competitions.issues._probe import (
    World,
    cell,
    drawn_places,
    known_by_place,
    names_are_known,
    remade,
    shuffled_anew,
    table_bytes,
)


def test_unknown_labels_accepted(v1: World, v2: World) -> None:
    """Diseases that do not exist pass, and so does the sample submission with no label at all."""
    for value in ("cat", "", "blast "):
        assert v1.accepts(cell(v1.perfect, "label", value)), value
        assert "label" in v2.refusal(cell(v2.perfect, "label", value)), value
    assert set(v1.sample["label"]) == {""}
    assert v2.accepts(v2.sample)


def test_original_names(v1: World, v2: World) -> None:
    """Kaggle's train.csv has the labels of v1's test images by their names, and none of v2's."""
    names_are_known(v1, v2, "image_id", v1.kaggle.read_csv("train.csv")["image_id"])


def test_order_from_a_constant_seed(v1: World) -> None:
    """Places in a train.csv that is sorted by label, as Kaggle's is, tell the label."""
    table = v1.kaggle.read_csv("train.csv").sort_values("label")
    worlds = remade(v1, {"train.csv": table_bytes(table)})
    places = drawn_places(len(table), train_size=0.75)
    assert known_by_place(worlds["v1"], places) == 1.0
    assert known_by_place(worlds["v2"], places) < 0.5
    assert known_by_place(worlds["v2"], shuffled_anew(places)) < 0.5
