"""Probes of Facebook Recruiting III - Keyword Extraction."""

from __future__ import annotations

import pytest

from tests.competitions.issues._probe import (
    World,
    blanked,
    remade,
    table_bytes,
    zipped,
)


def test_bodies_in_sample(v1: World, v2: World) -> None:
    """Who fills in the sample submission uploads the test set again, with every title and body."""
    assert {"Title", "Body"} <= set(v1.sample)
    assert list(v2.sample) == ["Id", "Tags"]


def test_missing_value_tags(v1: World, v2: World) -> None:
    """Questions tagged `null` or `nan` have no tag, so nobody can learn or find it."""
    original = v1.kaggle.archive("Train.zip").read_csv("Train.csv", dtype=str, keep_default_na=False).set_index("Id")

    def lost(world: World) -> int:
        shown = world.table("train.csv", dtype=str, keep_default_na=False).set_index("Id")
        return sum(blanked(shown[name], original.loc[shown.index, name]) for name in ("Title", "Body", "Tags"))

    assert lost(v1) > 0
    assert lost(v2) == 0


def test_unknown_tags_are_free(v1: World, v2: World) -> None:
    """A hundred invented tags for every question cost nothing."""
    invented = " ".join(f"invented-{number}" for number in range(100))
    guess = v1.sample[["Id", "Tags"]]
    stuffed = guess.assign(Tags=guess["Tags"] + f" {invented}")
    assert v1.grade(stuffed) == v1.grade(guess) > 0
    assert v2.grade(stuffed) < v2.grade(guess) / 5


def test_pooled_f1(v1: World, v2: World) -> None:
    """Answering only questions with many tags pays more in v1 than their share of the questions."""
    counts = v1.perfect["Tags"].str.split().str.len()
    many = counts.gt(counts.median())
    guess = v1.perfect[["Id", "Tags"]].assign(Tags=v1.perfect["Tags"].where(many, "guess"))
    assert v2.grade(guess) == pytest.approx(many.mean(), abs=0.03)
    assert v1.grade(guess) > many.mean() + 0.05


def test_copies_on_both_sides(v1: World, v2: World) -> None:
    """The tags of a test question that is also a training question are known."""
    table = v1.kaggle.archive("Train.zip").read_csv("Train.csv", dtype=str, keep_default_na=False)
    questions = table.iloc[[row % 50 for row in range(400)]].assign(Id=range(400))
    worlds = remade(v1, {"Train.zip": zipped(Train=table_bytes(questions))})
    known = {}
    for edition, world in worlds.items():
        seen, asked = (world.table(name, dtype=str, keep_default_na=False) for name in ("train.csv", "test.csv"))
        known[edition] = (
            asked[["Title", "Body"]].apply(tuple, axis=1).isin(seen[["Title", "Body"]].apply(tuple, axis=1))
        )
    assert known["v1"].mean() > 0.9
    assert known["v2"].mean() == 0
