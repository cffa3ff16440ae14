"""Probes of Text Normalization Challenge (Russian)."""

from __future__ import annotations

from tests.competitions.issues._probe import World, known_sentences, remade, repeated_sentences, table_bytes, zipped


def test_missing_value_tokens(v1: World, v2: World) -> None:
    """Who is to read out `null` sees a blank cell."""
    tokens = v1.kaggle.archive("ru_train.csv.zip").read_csv("ru_train.csv")
    said = table_bytes(tokens.assign(before="null", after="null"))
    for edition, world in remade(v1, {"ru_train.csv.zip": zipped(ru_train=said)}).items():
        shown = world.packed("ru_test_2.csv.zip", "ru_test_2.csv", dtype=str, keep_default_na=False)
        assert (shown["before"] == "").all() == (edition == "v1")


def test_sentences_on_both_sides(v1: World, v2: World) -> None:
    """The tokens of a test sentence that is also a training sentence are read out there."""
    worlds = remade(v1, {"ru_train.csv.zip": zipped(ru_train=repeated_sentences())})
    known = {edition: known_sentences(world, "ru") for edition, world in worlds.items()}
    assert known["v1"] > 0.9
    assert known["v2"] == 0
    sizes = {edition: len(world.sample) for edition, world in worlds.items()}
    assert sizes["v1"] == sizes["v2"], "the test set is the same"
