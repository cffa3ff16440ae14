"""Where a dataset names its units: the rows of the answers, and the rows or files of train."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from common.errors import UserError
from competitions.variants.links import side_of
from competitions.variants.records import Keep, Table

_COVERAGE = 0.9  # share of the ids or units of test that a column of a table must have to name them

_COCO = ("image_id", "category_id")


class Underivable(UserError):
    """A competition has no variants; the message says why."""


class TooFewUnits(UserError):
    """Train has not more units than a variant is to have."""

    def __init__(self, units: int) -> None:
        super().__init__(f"{units} units of train are too few")
        self.units = units


class Units(NamedTuple):
    """What the unit of a row is, as in `Resampling` of the competition's facts."""

    id: str | None = None
    column: str | None = None
    pattern: str | None = None


@dataclass(frozen=True)
class Source:
    """A table that names units, or several with the same columns."""

    tables: tuple[Table, ...]
    unit: str
    """The column that names the unit."""
    id: str | None
    """The column that names rows, if there is one."""
    pattern: str | None
    """Finds the unit in its column."""
    labels: tuple[str, ...]
    """Columns that may hold classes."""

    def rows(self) -> Iterator[tuple[str, Mapping[str, str]]]:
        """Each row with its unit."""
        for table in self.tables:
            for cells in table.rows():
                row = dict(zip(table.columns, cells, strict=False))
                yield self.unit_of(row[self.unit]), row

    def unit_of(self, cell: str) -> str:
        """The unit of a row by its cell in the column."""
        if self.pattern and (match := re.search(self.pattern, cell)):
            return match[1]
        return cell

    def keep(self, table: Table, units: frozenset[str]) -> Keep:
        """Which rows of a table that has the column belong to units."""
        position = list(table.columns).index(self.unit)
        return lambda cells: self.unit_of(cells[position]) in units


def of_test(answers: Table, sample: Table, how: Units, features: Collection[str]) -> Source:
    """The answers as the source of the units of test. Raises `Underivable` if rows have no ids.

    `features` are the columns of public tables of test.
    """
    key = how.id or _shared_ids(answers, sample)
    if key not in answers.columns:
        raise Underivable(f"the answers have no column `{key}`")
    unit = how.column or key
    return Source((answers,), unit, key, how.pattern, _labels(answers, (unit, key), sample, features))


def _labels(table: Table, ids: Collection[str], sample: Table, features: Collection[str]) -> tuple[str, ...]:
    """Columns that may hold classes: those of submissions, else those that tables of test lack, else all but ids."""
    names = [name for name in table.columns if name not in ids]
    submitted = [name for name in names if name in sample.columns]
    return tuple(submitted or [name for name in names if name not in features] or names)


def _shared_ids(answers: Table, sample: Table) -> str:
    """Of the columns that both have, the one with the most values that both have."""
    names = [name for name in answers.columns if name and name in sample.columns]
    values = {table: _values(table, names) for table in (answers, sample)}
    both = {name: len(values[answers][name]) for name in names if values[answers][name] <= values[sample][name]}
    if not both:
        raise Underivable("answers and sample submission have no column of ids in common")
    return max(both, key=lambda name: both[name])


def _values(table: Table, names: Sequence[str]) -> dict[str, set[str]]:
    columns = {name: list(table.columns).index(name) for name in names}
    found: dict[str, set[str]] = {name: set() for name in names}
    for cells in table.rows():
        for name, number in columns.items():
            found[name].add(cells[number])
    return found


def names_of_test(tables: Iterable[Table], test: Source) -> dict[str, bool]:
    """Columns by which public tables of test name its ids or units, and whether they name units."""
    units, ids = set[str](), set[str]()
    for unit, row in test.rows():
        units.add(unit)
        ids.add(row[test.id or test.unit])
    named: dict[str, bool] = {}
    for table in tables:
        found = _values(table, list(table.columns))
        for name, values in found.items():
            if len(values & ids) >= _COVERAGE * len(ids):
                named.setdefault(name, False)
            elif len(values & units) >= _COVERAGE * len(units):
                named.setdefault(name, True)
    return named


def of_train(
    tables: Sequence[Table], test: Source, named: Mapping[str, bool], sample: Table, features: Collection[str]
) -> Source | None:
    """The tables of train as the source of its units; None if there are none.

    Args:
        tables: public tables that are not of test.
        test: the units of test.
        named: the columns by which tables of test name ids or units.
        sample: the sample submission.
        features: the columns of public tables of test.
    """
    names = [test.unit, *(name for name, is_unit in named.items() if is_unit), test.id or test.unit, *named]
    answered = {*sample.columns, *test.tables[0].columns}

    def unit_in(table: Table) -> str | None:
        own = [_COCO[0]] if _is_coco(table) else names
        return next((name for name in own if name in table.columns), None)

    def fitness(table: Table) -> tuple[int, ...]:
        shared = len(answered.intersection(table.columns))
        return _is_coco(table), shared, side_of(table.name) == "train", -len(table.name)

    found = [table for table in tables if unit_in(table) is not None]
    if not found:
        return None
    best = max(found, key=fitness)
    unit = unit_in(best)
    assert unit is not None
    same = tuple(each for each in found if each.columns == best.columns and side_of(each.name) == side_of(best.name))
    key = test.id if test.id in best.columns and not _is_coco(best) else unit
    labels = _COCO[1:] if _is_coco(best) else _labels(best, (unit, key or unit), sample, features)
    pattern = test.pattern if unit in (test.unit, test.id) else None
    return Source(same, unit, key, pattern, labels)


def _is_coco(table: Table) -> bool:
    """Whether these are annotations of images in the format of COCO."""
    return set(_COCO) <= set(table.columns)
