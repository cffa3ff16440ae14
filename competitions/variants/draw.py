"""Which units a variant keeps: those with the smallest hashes, after two of each class.

The result depends on the seed and on the names of the units only, not on their order. Memory does not depend on the
number of units.
"""

from __future__ import annotations

import hashlib
import heapq
from collections.abc import Collection, Iterable
from itertools import zip_longest
from typing import NamedTuple

OF_A_CLASS = 2
"""Units of each class that are kept."""
Labels = Iterable[tuple[str, str]]
"""The labels of a unit: a column and the value in it."""


class Drawn(NamedTuple):
    """The units that are kept."""

    units: tuple[str, ...]
    """Those of classes first, and otherwise in the order of their hashes."""
    classes: frozenset[str] | None
    """The classes that are kept; None if all are."""


class _Smallest:
    """The names with the smallest hashes, at most `count`."""

    def __init__(self, count: int) -> None:
        self.count = count
        self.hashes: dict[str, int] = {}
        self._heap: list[tuple[int, str]] = []
        self.overflowed = False

    def add(self, name: str, value: int) -> str | None:
        """Add a name; returns the one that has to go for it, which may be itself."""
        if name in self.hashes:
            return None
        self.hashes[name] = value
        heapq.heappush(self._heap, (-value, name))
        if len(self._heap) <= self.count:
            return None
        self.overflowed = True
        gone = heapq.heappop(self._heap)[1]
        del self.hashes[gone]
        return gone

    def names(self) -> list[str]:
        """The names, the smallest hash first."""
        return sorted(self.hashes, key=lambda name: (self.hashes[name], name))


class Draw:
    """Draws `count` units of those that are added.

    A column has classes if most of its values belong to two units or more. If there are more classes than half of
    `count`, those with the smallest hashes are kept, with two units each.
    """

    def __init__(self, count: int, seed: int, only: Collection[str] | None = None) -> None:
        self._count, self._seed, self._only = count, seed, only
        self._units, self._others = _Smallest(count), _Smallest(count)
        self._classes: dict[str, _Smallest] = {}
        self._of_class: dict[tuple[str, str], _Smallest] = {}

    def add(self, unit: str, labels: Labels, named: Iterable[str] = ()) -> None:
        """Add a row of a unit. `named` are its classes; with `only`, units of none of these come last."""
        value = _hash(self._seed, unit)
        if self._only is not None and self._only.isdisjoint(named):  # type: ignore[attr-defined]
            self._others.add(unit, value)
            return
        self._units.add(unit, value)
        for label in labels:
            column, name = label
            classes = self._classes.setdefault(column, _Smallest(max(self._count // OF_A_CLASS, 1)))
            if name not in classes.hashes:
                gone = classes.add(name, _hash(self._seed, f"{column}\0{name}"))
                if gone == name:
                    continue
                if gone is not None:
                    del self._of_class[column, gone]
                self._of_class[label] = _Smallest(OF_A_CLASS)
            self._of_class[label].add(unit, value)

    @property
    def overflowed(self) -> bool:
        """Whether more than `count` units were added."""
        return self._units.overflowed

    def drawn(self, at_least: int = 0) -> Drawn:
        """The units that are kept. Units of other classes than `only` fill up to `at_least`."""
        columns = [self._names_of(column) for column in self._classes if self._has_classes(column)]
        units: dict[str, None] = {}
        # One of each class first, and each column in turn: the units may not suffice for two of each.
        for place in range(OF_A_CLASS):
            for classes in zip_longest(*columns, fillvalue=[]):
                units.update((names[place], None) for names in classes if place < len(names))
        units.update(dict.fromkeys(self._units.names()))
        chosen = list(units)[: self._count]
        chosen += self._others.names()[: max(at_least - len(chosen), 0)]
        cut = [column for column in self._classes if self._has_classes(column) and self._classes[column].overflowed]
        kept = {name for column in cut for name in self._classes[column].hashes}
        return Drawn(tuple(chosen), frozenset(kept) if cut else None)

    def _names_of(self, column: str) -> list[list[str]]:
        """The units to keep of each class of a column."""
        return [self._of_class[column, name].names() for name in self._classes[column].names()]

    def _has_classes(self, column: str) -> bool:
        sizes = [len(self._of_class[column, name].hashes) for name in self._classes[column].hashes]
        return len(sizes) > 1 and 2 * sum(size == OF_A_CLASS for size in sizes) >= len(sizes)


def _hash(seed: int, name: str) -> int:
    text = f"{seed}\0{name}".encode(errors="surrogateescape")
    return int.from_bytes(hashlib.blake2b(text, digest_size=8).digest())
