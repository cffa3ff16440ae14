"""Metrics of the interface against references in plain Python."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mlebench.metrics import average_precision_at_k, dice_coefficient, mean_average_precision_at_k

ITEMS = st.sampled_from("abcde")


def reference(actual: set[str], predicted: list[str], k: int) -> float:
    hits, total, seen = 0, 0.0, set()
    for rank, guess in enumerate(predicted[:k], 1):
        if guess in actual and guess not in seen:
            hits += 1
            total += hits / rank
        seen.add(guess)
    return total / min(len(actual), k)


@given(st.sets(ITEMS, min_size=1), st.lists(ITEMS, max_size=8), st.integers(1, 6))
def test_average_precision_is_that_of_the_formula(actual: set[str], predicted: list[str], k: int) -> None:
    assert average_precision_at_k(actual, predicted, k) == pytest.approx(reference(actual, predicted, k))


@given(st.lists(st.tuples(st.sets(ITEMS, min_size=1), st.lists(ITEMS, max_size=8)), min_size=1), st.integers(1, 6))
def test_the_mean_is_over_rows(rows: list[tuple[set[str], list[str]]], k: int) -> None:
    actual, predicted = [list(column) for column in zip(*rows, strict=True)]
    expected = np.mean([reference(each, guesses, k) for each, guesses in rows])
    assert mean_average_precision_at_k(actual, predicted, k) == pytest.approx(expected)


def test_numbers_are_items_too() -> None:
    assert average_precision_at_k({1, 2}, [2, 3], 5) == 0.5


def test_what_has_no_precision() -> None:
    with pytest.raises(ZeroDivisionError):
        average_precision_at_k(set(), ["a"], 5)
    with pytest.raises(ValueError, match="2 rows of true items and 1 row"):
        mean_average_precision_at_k([{"a"}, {"b"}], [["a"]], 5)


@given(st.lists(st.tuples(st.booleans(), st.booleans())))
def test_dice_is_that_of_sets(pixels: list[tuple[bool, bool]]) -> None:
    a = {number for number, (pixel, _) in enumerate(pixels) if pixel}
    b = {number for number, (_, pixel) in enumerate(pixels) if pixel}
    expected = 2 * len(a & b) / (len(a) + len(b)) if a or b else 1.0
    matrix = np.array(pixels, dtype=int).reshape(-1, 2)
    assert dice_coefficient(matrix[:, 0], matrix[:, 1]) == pytest.approx(expected)


def test_dice_of_different_shapes_is_refused() -> None:
    with pytest.raises(ValueError, match="shapes"):
        dice_coefficient(np.zeros((2, 3)), np.zeros((3, 2)))
