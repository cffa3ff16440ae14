"""Schedules that can be worked out by hand, and bounds that every list schedule keeps."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from common.scheduling import finish_times


@given(st.integers(1, 40), st.integers(1, 12))
def test_equal_tasks_run_in_full_waves(count: int, slots: int) -> None:
    assert max(finish_times([(0, 10)] * count, slots)) == 10 * math.ceil(count / slots)


@given(st.lists(st.floats(0.1, 100), min_size=1, max_size=30), st.integers(1, 8))
def test_the_last_end_is_within_the_bounds_of_list_scheduling(lengths: list[float], slots: int) -> None:
    """Not before the longest task or the work divided by the slots; at most their sum (Graham 1966)."""
    last = max(finish_times([(0, length) for length in lengths], slots))
    least = max(sum(lengths) / slots, max(lengths))
    assert least * (1 - 1e-9) <= last <= (sum(lengths) / slots + max(lengths) * (1 - 1 / slots)) * (1 + 1e-9)


def test_no_task_begins_before_it_is_ready_or_its_slot_is_free() -> None:
    assert finish_times([(5, 1), (0, 2)], slots=1) == [6, 8]
    assert finish_times([(0, 1), (0, 1)], slots=2, start=3) == pytest.approx([4, 4])
    assert finish_times([], slots=2) == []
