"""Columns as arrays."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from competitions.tables import arrays as tables
from competitions.tables.arrays import order_as, ordered

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


@pytest.mark.parametrize("many", [False, True])
@given(data=st.data(), kind=KINDS, wanted_kind=KINDS)
def test_the_order_as_others(many: bool, data: st.DataObject, kind: str, wanted_kind: str) -> None:
    wanted = np.array(sorted(data.draw(st.sets(st.integers(0, 127), max_size=30))), wanted_kind)
    numbers = np.array(data.draw(st.permutations(wanted.tolist())), kind)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tables, "_MIN_COMPACT_ROWS", 0 if many else 1000)
        patch.setattr(tables, "_PART_ROWS", 7)
        order = order_as(numbers, wanted)
        assert order is not None
        assert order.dtype == (np.int32 if many else np.intp)
        assert numbers[order].tolist() == wanted.tolist()
        if len(numbers):
            place = data.draw(st.integers(0, len(numbers) - 1))
            numbers[place] = data.draw(st.integers(0, 127).filter(lambda other: other != numbers[place]))
            assert order_as(numbers, wanted) is None


def test_the_order_of_numbers_that_need_all_bits() -> None:
    ends = np.iinfo(np.int64)
    wanted = np.array([ends.min, -1, 0, ends.max])
    order = order_as(wanted[[2, 0, 3, 1]], wanted)
    assert order is not None
    assert order.tolist() == [1, 3, 0, 2]
    assert order_as(wanted[[2, 0, 3, 0]], wanted) is None
    assert order_as(wanted[:-1], wanted) is None
    assert order_as(wanted[:0], wanted) is None
    above = np.array([2**63, 2**63 + 1], np.uint64)
    assert order_as(above[::-1], above) is not None
    assert order_as(above, np.array([-(2**63), -(2**63) + 1])) is None, "the same bits are other numbers"
