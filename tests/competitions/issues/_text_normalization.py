"""Probes that both text normalization challenges share: their files differ by the language in their names."""

from __future__ import annotations

import pandas as pd

from tests.competitions.issues._probe import World, remade, table_bytes, zipped


def check_missing_value_tokens(v1: World, language: str) -> None:
    """Who is to read out `null` sees a blank cell."""
    train, test = f"{language}_train", f"{language}_test_2"
    tokens = v1.kaggle.archive(f"{train}.csv.zip").read_csv(f"{train}.csv")
    said = table_bytes(tokens.assign(before="null", after="null"))
    for edition, world in remade(v1, {f"{train}.csv.zip": zipped(**{train: said})}).items():
        shown = world.packed(f"{test}.csv.zip", f"{test}.csv", dtype=str, keep_default_na=False)
        assert (shown["before"] == "").all() == (edition == "v1")


def check_sentences_on_both_sides(v1: World, language: str) -> None:
    """The tokens of a test sentence that is also a training sentence are read out there."""
    train = f"{language}_train"
    worlds = remade(v1, {f"{train}.csv.zip": zipped(**{train: _repeated_sentences()})})
    known = {edition: _known_sentences(world, language) for edition, world in worlds.items()}
    assert known["v1"] > 0.9
    assert known["v2"] == 0
    sizes = {edition: len(world.sample) for edition, world in worlds.items()}
    assert sizes["v1"] == sizes["v2"], "the test set is the same"


def _repeated_sentences() -> bytes:
    """A training table whose sentences occur several times."""
    rows = [
        (n, place, "PLAIN", word, word) for n in range(60) for place, word in enumerate(f"it is {n % 15} .".split())
    ]
    return table_bytes(pd.DataFrame(rows, columns=["sentence_id", "token_id", "class", "before", "after"]))


def _known_sentences(world: World, language: str) -> float:
    """The share of the test sentences that are in train as well."""
    names = [f"{language}_train.csv", f"{language}_test_2.csv"]
    train, test = (world.packed(f"{name}.zip", name, dtype=str) for name in names)
    seen, asked = (set(table.groupby("sentence_id")["before"].agg(" ".join)) for table in (train, test))
    return len(seen & asked) / len(asked)
