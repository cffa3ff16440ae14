"""Probes of Text Normalization Challenge (English)."""

from __future__ import annotations

from tests.competitions.issues._probe import World, remade, table_bytes, zipped


def test_missing_value_tokens(v1: World, v2: World) -> None:
    """Who is to read out `null` sees a blank cell."""
    tokens = v1.kaggle.archive("en_train.csv.zip").read_csv("en_train.csv")
    said = table_bytes(tokens.assign(before="null", after="null"))
    for edition, world in remade(v1, {"en_train.csv.zip": zipped(en_train=said)}).items():
        shown = world.packed("en_test_2.csv.zip", "en_test_2.csv", dtype=str, keep_default_na=False)
        assert (shown["before"] == "").all() == (edition == "v1")
