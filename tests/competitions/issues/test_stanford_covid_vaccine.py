"""Probes of OpenVaccine: COVID-19 mRNA Vaccine Degradation Prediction."""

from __future__ import annotations

import pandas as pd

from tests.competitions.issues._probe import World, remade


def test_rows_picked_by_file_position(v1: World, v2: World) -> None:
    """The right values, each with its id, are wrong from the end to the beginning."""
    assert v1.grade(v1.perfect) == v2.grade(v2.perfect[::-1]) == 0
    assert v1.grade(v1.perfect[::-1]) > 0.01


def test_unscored_values_unchecked(v1: World, v2: World) -> None:
    """Whatever is not scored may be left blank, and what may be left blank is not scored."""
    scored = v1.perfect["id_seqpos"].isin(v1.truth.loc[v1.truth["keep"], "id_seqpos"])
    blank = v1.perfect.assign(reactivity=v1.perfect["reactivity"].where(scored, ""))
    assert v1.grade(blank) == 0
    assert "reactivity" in v2.refusal(blank)


def test_similar_sequences(v1: World, v2: World) -> None:
    """A test sequence differs from a training sequence in a base or two."""
    rows = pd.read_json(v1.kaggle.open_file("train.json"), lines=True)
    families = rows["sequence"].iloc[:5].tolist()
    rows["sequence"] = [("A" if number % 2 else "C") + families[number % 5][1:] for number in range(len(rows))]
    changed = rows.to_json(orient="records", lines=True).encode()
    for edition, world in remade(v1, {"train.json": changed}).items():
        train, test = (pd.read_json(world.public / f"{part}.json", lines=True) for part in ("train", "test"))
        known = set(train["sequence"].str[1:]) if len(train) else set()
        assert test["sequence"].str[1:].isin(known).any() == (edition == "v1")
