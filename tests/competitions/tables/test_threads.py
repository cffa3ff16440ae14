"""Iteration over what threads compute."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import pytest

from competitions.tables.threads import ahead


def test_the_next_value_is_computed_while_one_is_used() -> None:
    computed = threading.Event()

    def values() -> Iterator[int]:
        yield 0
        computed.set()
        yield 1

    found = ahead(values())
    assert next(found) == 0
    assert computed.wait(60)
    assert list(found) == [1]


@pytest.mark.parametrize("values", [[], [None], [1, 2, 3], [[], [0]]])
def test_all_values_come_in_order(values: list[object]) -> None:
    assert list(ahead(values)) == values


def test_an_error_comes_after_the_values_before_it() -> None:
    def values() -> Iterator[int]:
        yield 0
        raise ValueError("damaged")

    found = ahead(values())
    assert next(found) == 0
    with pytest.raises(ValueError, match="damaged"):
        next(found)


def test_no_thread_remains_when_it_is_closed_early() -> None:
    found = ahead(range(10))
    assert next(found) == 0
    found.close()  # type: ignore[attr-defined]  # it is a generator
    assert not [each for each in threading.enumerate() if each.name.startswith("ahead")]
