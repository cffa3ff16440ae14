"""Permutations of columns of text: those that Arrow's hash table finds, or none."""

from __future__ import annotations

import random

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given, strategies

from competitions.scoring import permutations
from competitions.scoring.matching import positions
from competitions.scoring.permutations import permutation

TEXTS = strategies.lists(
    strategies.one_of(strategies.text(max_size=20), strategies.text(alphabet="a\0", max_size=18)),
    min_size=1,
    max_size=40,
    unique=True,
)


def _arrow(values: list[str], kind: pa.DataType | None = None) -> pa.Array:
    return pa.array(values, kind or pa.string())


@given(TEXTS, strategies.randoms(use_true_random=False), strategies.sampled_from([pa.string(), pa.large_string()]))
def test_texts_in_another_order_are_found(texts: list[str], order: random.Random, kind: pa.DataType) -> None:
    mixed = order.sample(texts, len(texts))
    # Slices: neither the offsets nor the bytes of a column start at zero.
    ours, theirs = _arrow(["before", *mixed, "after"], kind)[1:-1], _arrow(["earlier ones", *texts], kind)[1:]
    rows = permutation(ours, theirs)
    if max(map(len, texts)) == 0:
        assert rows is None
        return
    assert rows is not None
    assert [mixed[row] for row in rows.tolist()] == texts


@pytest.mark.parametrize("length", [1, 3, 7, 8, 9, 12, 16, 17, 64])
def test_texts_of_one_length_are_found_and_every_byte_counts(length: int) -> None:
    texts = sorted({f"{number:0{length}x}"[-length:] for number in range(0, 1 << 16, 37)})
    mixed = random.Random(length).sample(texts, len(texts))
    ours, theirs = _arrow(["before", *mixed, "after"])[1:-1], _arrow(["other", *texts])[1:]
    rows = permutation(ours, theirs)
    assert rows is not None
    assert [mixed[row] for row in rows.tolist()] == texts
    for place in range(length):
        changed = [*texts[:-1], texts[-1][:place] + "!" + texts[-1][place + 1 :]]
        assert permutation(ours, _arrow(changed)) is None
    assert permutation(ours, _arrow([*texts[:-1], texts[-1] + "!"])) is None


@pytest.mark.parametrize("length", [8, 11, 12, 16])
def test_numbers_with_leading_zeros_are_found(length: int) -> None:
    texts = [f"{number:0{length}d}" for number in range(12_000)]  # which differ in their last bytes only
    mixed = random.Random(length).sample(texts, len(texts))
    rows = permutation(_arrow(texts), _arrow(mixed))
    assert rows is not None
    assert [texts[row] for row in rows.tolist()] == mixed


@given(TEXTS, TEXTS)
def test_other_texts_are_no_permutation(ones: list[str], others: list[str]) -> None:
    length = min(len(ones), len(others))
    ones, others = ones[:length], others[:length]
    if sorted(ones) != sorted(others):
        assert permutation(_arrow(ones), _arrow(others)) is None


@pytest.mark.parametrize(
    ("ours", "theirs"),
    [
        (["a", "a", "b"], ["a", "b", "b"]),
        (["a", "a"], ["a", "a"]),
        (["a", "b"], ["a", "a"]),
        (["a", "a"], ["a", "b"]),
        (["a", "a\0"], ["a", "b\0"]),
        (["a\0", "a"], ["a\0\0", "a"]),
        (["x" * 129], ["x" * 129]),
        ([], []),
    ],
)
def test_repetitions_and_long_texts_are_left_to_others(ours: list[str], theirs: list[str]) -> None:
    assert permutation(_arrow(ours), _arrow(theirs)) is None


@given(TEXTS, TEXTS, strategies.randoms(use_true_random=False))
def test_texts_among_others_are_found(texts: list[str], others: list[str], order: random.Random) -> None:
    mixed = [*texts, *(other for other in [*others, *others] if other not in texts)]
    order.shuffle(mixed)
    rows = permutation(_arrow(mixed), _arrow(texts))
    longest = [max(len(text.encode()) for text in each) for each in (texts, mixed)]
    assert rows is not None or longest[0] != longest[1] or not longest[0] or len(set(map(len, texts))) == 1
    if rows is not None:
        assert [mixed[row] for row in rows.tolist()] == texts


@pytest.mark.parametrize("length", [7, 8, 64])
def test_among_others_each_is_given_once(length: int) -> None:
    texts = [f"{number:0{length}d}" for number in range(0, 3_000, 3)]
    others = [f"{number:0{length}d}" for number in range(1, 3_000, 3)]
    rows = permutation(_arrow([*others, *texts, *others]), _arrow(texts))
    assert rows is not None
    assert rows.tolist() == list(range(1_000, 2_000))
    assert permutation(_arrow([*others, *texts, texts[7]]), _arrow(texts)) is None
    assert permutation(_arrow([*others, *texts[1:], texts[7]]), _arrow(texts)) is None
    assert permutation(_arrow(texts), _arrow([*others, *texts])) is None


@pytest.mark.parametrize("different", [1, 8, 1000])
def test_hashes_that_collide_decide_nothing(monkeypatch: pytest.MonkeyPatch, different: int) -> None:
    """All texts have one of a few hashes: whatever is found is right."""
    real = permutations._hashes
    monkeypatch.setattr(permutations, "_hashes", lambda texts, count: real(texts, count) % np.uint64(different))
    texts = [f"{number:x}" for number in range(5_000)]
    rows = permutation(_arrow(texts), _arrow(texts[::-1]))
    assert rows is None or [texts[row] for row in rows.tolist()] == texts[::-1]
    rows = permutation(_arrow(texts), _arrow(texts[:4_000]))
    assert rows is None or [texts[row] for row in rows.tolist()] == texts[:4_000]


def test_many_rows_are_matched_as_by_arrow() -> None:
    texts = [f"id_{number * 7919 % 100_003}_{'x' * (number % 23)}" for number in range(50_000)]
    mixed = random.Random(0).sample(texts, len(texts))
    rows = positions(pd.Series(mixed), pd.Series(texts))
    assert rows is not None
    assert (rows == pc.index_in(_arrow(texts), value_set=_arrow(mixed)).to_numpy()).all()
    assert positions(pd.Series([*mixed[:-1], mixed[0]]), pd.Series(texts)) is None
    assert positions(pd.Series([*mixed[:-1], "unknown"]), pd.Series(texts)) is None
