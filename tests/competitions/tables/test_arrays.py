"""Columns as arrays."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from competitions.tables.arrays import ordered

KINDS = st.sampled_from(["int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"])


@given(KINDS.flatmap(lambda kind: arrays.arrays(kind, st.integers(0, 30))))
def test_the_order_is_that_of_a_stable_sort(numbers: np.ndarray) -> None:
    order, found = ordered(numbers)
    expected = np.argsort(numbers, kind="stable")
    assert order.tolist() == expected.tolist()
    assert found.dtype == numbers.dtype
    assert found.tolist() == numbers[expected].tolist()


@pytest.mark.parametrize("kind", ["int64", "uint64", "int32", "uint32"])
def test_numbers_at_the_ends_of_their_range(kind: str) -> None:
    ends = np.iinfo(kind)
    for low, high in ((ends.min, ends.max), (ends.min, ends.min + 40), (ends.max - 40, ends.max)):
        numbers = np.array([high, low, high, low + 1, high - 1, low] * 50, dtype=kind)
        order, found = ordered(numbers)
        assert order.tolist() == np.argsort(numbers, kind="stable").tolist()
        assert found.tolist() == sorted(numbers.tolist())
