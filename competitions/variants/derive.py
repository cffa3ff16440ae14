"""The declaration of a variant: the prepared dataset of its competition with fewer units of train and of test."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import PurePosixPath
from typing import Any, NamedTuple

from competitions.preparing.declaration import Content, Preparation
from competitions.preparing.download import Download, Member
from competitions.variants.draw import Draw
from competitions.variants.links import Side, column_of, files_of, group_of, side_of
from competitions.variants.records import ARCHIVES, Entry, Keep, Table, TableFile, entries_of, table_file
from competitions.variants.units import Source, TooFewUnits, Underivable, Units, names_of_test, of_test, of_train

SUMMARY = "variant.json"
"""The file beside the public ones that states what is kept."""
LEAST_TEST_UNITS = 20
"""Units of test that are kept at least, where there are as many."""
_MOST_TABLES = 20  # of a folder and suffix; more of them are files of units
_SHARED = 0.5  # share of the units of test that train has if both have the same units, such as customers
_MOST_CHARACTERS = 200  # of a cell that may name a file

Values = dict[str, set[str]]
"""Values of kept rows by column; columns that identify rows or units come first."""

_NO_TRAIN = "no public table names the units of train, and no files do that are named as those of test"


class Roles(NamedTuple):
    """The prepared files that have a role, by their paths."""

    answers: str
    sample_submission: str
    gold_submission: str


def test_units(rows: int) -> int:
    """Units of test of a variant with as many units of train."""
    return max(LEAST_TEST_UNITS, rows // 2)


def derive(raw: Download, roles: Roles, how: Units, rows: int, seed: int, *, only_smaller: bool = False) -> Preparation:
    """Declare the files of a variant.

    Args:
        raw: the prepared dataset of the competition, with `public` and `private`.
        roles: the files with answers and submissions.
        how: what a unit of test is.
        rows: units of train to keep; of test, `test_units(rows)` are kept.
        seed: chooses the units.
        only_smaller: refuse a variant with all units of train.

    Raises:
        TooFewUnits: train has not more than `rows` units, with `only_smaller`.
        Underivable: units of train or test cannot be found by rule.
    """
    dataset = _Dataset(raw, roles)
    answers, sample = dataset.table(roles.answers), dataset.table(roles.sample_submission)
    of_test_set = list(dataset.tables("test"))
    features = {name for table in of_test_set for name in table.columns}
    test = of_test(answers, sample, how, features)
    named = names_of_test(of_test_set, test)
    train = of_train([*dataset.tables("train"), *dataset.tables(None)], test, named, sample, features)
    selection = _Selection(dataset, rows, seed)
    if train is not None:
        selection.of_tables(test, train, named)
    else:
        selection.of_files(test, named)
    if only_smaller and not selection.smaller:
        raise TooFewUnits(selection.units["train"])
    return selection.declared()


class _Dataset:
    """The files of a dataset and the tables among them."""

    def __init__(self, raw: Download, roles: Roles) -> None:
        self.raw, self.roles = raw, roles
        self.groups: dict[tuple[str, str, str], list[Entry]] = {}
        self.files: dict[tuple[str, str], TableFile] = {}
        for entry in entries_of(raw):
            self.groups.setdefault((entry.path.partition("/")[0], *group_of(entry)), []).append(entry)
        for group in self.groups.values():
            for entry in group if len(group) <= _MOST_TABLES else ():
                if (file := table_file(raw, entry)) is not None:
                    self.files[entry.path, entry.inner] = file

    def table(self, path: str) -> Table:
        """The table in a file with a role."""
        file = self.files.get((path, ""))
        if file is None or list(file.tables) != [""]:
            raise Underivable(f"{path} is no table")
        return Table(file, "")

    def side(self, file: TableFile) -> Side:
        """The side that a table is on."""
        path = file.entry.path
        return "test" if path in self.roles or path.startswith("private/") else side_of(file.entry.name)

    def tables(self, side: Side) -> Iterator[Table]:
        """The public tables of one side that have no role."""
        for (path, _), file in self.files.items():
            if path not in self.roles and not path.startswith("private/") and self.side(file) == side:
                yield from file


class _Selection:
    """What is kept of a dataset."""

    def __init__(self, dataset: _Dataset, rows: int, seed: int) -> None:
        self.dataset, self.rows, self.seed = dataset, rows, seed
        self.keeps: dict[tuple[str, str], dict[str, Keep]] = {}
        """Which rows of a file's tables are kept."""
        self.values: dict[str, Values] = {"train": {}, "test": {}}
        self.ids: dict[str, tuple[str, ...]] = {"train": (), "test": ()}
        self.units = {"train": 0, "test": 0}
        self.all_test_units = 0
        self.smaller = False
        """Whether train has more units than are kept."""
        self.whole: list[str] = []
        self.test: Source | None = None
        self.test_units = frozenset[str]()

    def of_tables(self, test: Source, train: Source, named: Mapping[str, bool]) -> None:
        """Keep rows of these tables. Where train and test have the same units, those of test are in train as well."""
        units_of_test = {unit for unit, _ in test.rows()}
        shared = set[str]()
        draw = Draw(self.rows, self.seed)
        for unit, row in train.rows():
            draw.add(unit, [(name, row[name]) for name in train.labels])
            if unit in units_of_test:
                shared.add(unit)
        drawn, self.smaller = draw.drawn(), draw.overflowed
        kept = self._draw_test(test, drawn.classes)
        first = kept if len(shared) >= _SHARED * len(units_of_test) else ()
        self._keep_source("test", test, kept, named)
        self._keep_source("train", train, tuple(dict.fromkeys([*first, *drawn.units]))[: self.rows], {})

    def of_files(self, test: Source, named: Mapping[str, bool]) -> None:
        """Keep files of train, where no table names its units."""
        position = self._position_of_test(test)
        groups = [
            (folder, entries)
            for (part, folder, _), entries in self.dataset.groups.items()
            if part == "public" and _side(entries) != "test"
        ]
        best = max(groups, key=lambda each: (_side(each[1]) == "train", len(each[1])), default=None)
        if best is None or position is None:
            raise Underivable(_NO_TRAIN)
        folder, entries = best
        draw = Draw(self.rows, self.seed)
        for name in (_relative(entry, folder) for entry in entries):
            if (unit := _unit_of_file(name, position)) is not None:
                draw.add(unit, [("class", _class_of_file(name))] if position < 0 else [])
        drawn, self.smaller = draw.drawn(), draw.overflowed
        if len(drawn.units) < 2:
            raise Underivable(_NO_TRAIN)
        self.values["train"]["file"] = set(drawn.units)
        self.ids["train"] = ("file",)
        self.units["train"] = len(drawn.units)
        self._keep_source("test", test, self._draw_test(test, drawn.classes), named)

    def _position_of_test(self, test: Source) -> int | None:
        """The position of a unit's name in the paths of its files of test; None if there are no such files.

        -1 stands for the file's name.
        """
        values: Values = {"id": set(), "unit": set()}
        for unit, row in test.rows():
            values["id"].add(row[test.id or test.unit])
            values["unit"].add(unit)
        for (part, folder, _), entries in self.dataset.groups.items():
            if part == "public" and _side(entries) == "test":
                found = files_of([_relative(entry, folder) for entry in entries], values)
                if found is not None:
                    return found[1]
        return None

    def _draw_test(self, test: Source, classes: frozenset[str] | None) -> tuple[str, ...]:
        draw = Draw(test_units(self.rows), self.seed, classes)
        self.all_test_units = len({unit for unit, _ in test.rows()})
        for unit, row in test.rows():
            labels = [(name, row[name]) for name in test.labels]
            named = [name if value in ("1", "1.0") else value for name, value in labels] if classes is not None else ()
            draw.add(unit, labels, named)
        units = draw.drawn(LEAST_TEST_UNITS).units
        if len(units) < 2:
            raise Underivable("the test set has a single unit")
        return units

    def _keep_source(self, side: str, source: Source, units: tuple[str, ...], named: Mapping[str, bool]) -> None:
        """Keep the rows of units, and note their ids."""
        kept = frozenset(units)
        if side == "test":
            self.test, self.test_units = source, kept
        values, ids = self.values[side], source.id or source.unit
        values[ids] = set()
        for name in named:
            values[name] = set()
        values[source.unit if source.unit != ids else "unit"] = set(kept)
        self.ids[side] = tuple(values)
        self.units[side] = len(kept)
        for unit, row in source.rows():
            if unit not in kept:
                continue
            values[ids].add(row[ids])
            for name, is_unit in named.items():
                values[name].add(unit if is_unit else row[ids])
            _note(values, row)
        for table in source.tables:
            self._keep(table, source.keep(table, kept))

    def _keep(self, table: Table, keep: Keep) -> None:
        entry = table.file.entry
        self.keeps.setdefault((entry.path, entry.inner), {})[table.list] = keep

    def _link_tables(self) -> None:
        """Keep the rows of all other tables that belong to kept units."""
        for key, file in self.dataset.files.items():
            side = self.dataset.side(file)
            ids = self._joined(side, ids_only=True)
            for table in file:
                if table.list in self.keeps.get(key, {}):
                    continue
                if side == "test" and self.test is not None and self.test.pattern and self.test.unit in table.columns:
                    self._keep(table, self.test.keep(table, self.test_units))
                    continue
                found = column_of(table, ids)
                if found is None:
                    continue
                position, wanted = found
                self._keep(table, _member_of(position, wanted))
                for cells in table.rows():
                    for each in ("train", "test") if side is None else (side,):
                        if cells[position] in wanted:
                            _note(self.values[each], dict(zip(table.columns, cells, strict=False)))

    def _joined(self, side: Side, *, ids_only: bool = False) -> Values:
        """The kept values of one side, or of both; those that identify units and rows first."""
        together: Values = {}
        for each in ("train", "test") if side is None else (side,):
            for name, values in self.values[each].items():
                if not ids_only or name in self.ids[each]:
                    together[name] = together.get(name, set()) | values
        return {name: values for name, values in together.items() if values}

    def _named_files(self, names: list[str], side: Side) -> set[str] | None:
        """The files that belong to kept units; None if none of them belong to units."""
        ids = self._joined(side, ids_only=True)
        starts = {name: {each.rpartition("_")[0] for each in values} - {""} for name, values in ids.items()}
        found = files_of(names, self._joined(side)) or files_of(names, {n: v for n, v in starts.items() if v})
        return found[0] if found is not None else None

    def declared(self) -> Preparation:
        """The declaration, with a summary."""
        self._link_tables()
        kept = self._kept_files()
        out = Preparation()
        trees = {"public": out.public, "private": out.private}
        archives: dict[str, list[tuple[str, Member | Content]]] = {}
        for entries in self.dataset.groups.values():
            for entry in entries:
                part, _, path = entry.path.partition("/")
                if entry.path.endswith(ARCHIVES):
                    archives.setdefault(entry.path, [])
                what = self._content(entry, kept)
                if what is None:
                    continue
                if entry.inner:
                    archives[entry.path].append((entry.inner, what))
                elif isinstance(what, Content):
                    trees[part].content(path, what)
                elif entry.path != "public/description.md":
                    trees[part].copy(path, what)
        for archive, members in archives.items():
            part, _, path = archive.partition("/")
            trees[part].archive(path, sorted(members, key=lambda each: each[0]))
        out.public.json(SUMMARY, self._summary(), indent=1)
        return out

    def _content(self, entry: Entry, kept: set[tuple[str, str]]) -> Member | Content | None:
        key = entry.path, entry.inner
        if key in self.keeps:
            return self.dataset.files[key].content(self.keeps[key])
        return entry.member if key in kept else None

    def _kept_files(self) -> set[tuple[str, str]]:
        """The files without kept rows that belong to kept units, or to none."""
        kept = set()
        for (part, folder, suffix), entries in self.dataset.groups.items():
            others = [entry for entry in entries if (entry.path, entry.inner) not in self.keeps]
            side = _side(others) if others else None
            names = [_relative(entry, folder) for entry in others]
            found = self._named_files(names, side) if len(others) > 1 and part == "public" else None
            if found is None and len(others) > 1:
                self.whole.append(f"{part}/{folder}/*{suffix}")
            kept |= {
                (entry.path, entry.inner)
                for entry, name in zip(others, names, strict=True)
                if found is None or name in found
            }
        return kept

    def _summary(self) -> dict[str, Any]:
        return {
            "train_units": self.units["train"],
            "test_units": self.units["test"],
            "all_test_units": self.all_test_units,
            "seed": self.seed,
            "whole": sorted(self.whole),
        }


def _member_of(position: int, wanted: set[str]) -> Keep:
    return lambda cells: cells[position] in wanted


def _note(values: Values, row: Mapping[str, str]) -> None:
    for name, cell in row.items():
        if cell and len(cell) < _MOST_CHARACTERS:
            values.setdefault(name, set()).add(cell.rpartition("/")[2])


def _side(entries: list[Entry]) -> Side:
    """The side of files: that of all of them, or none."""
    sides = {side_of(entry.name) for entry in entries}
    return sides.pop() if len(sides) == 1 else None


def _relative(entry: Entry, folder: str) -> str:
    return entry.name.removeprefix(f"{folder}/") if folder else entry.name


def _unit_of_file(name: str, position: int) -> str | None:
    """The unit of a file of train: its path, or a folder in it."""
    if position < 0:
        return name
    parts = PurePosixPath(name).parts
    return parts[position] if position < len(parts) - 1 else None


def _class_of_file(name: str) -> str:
    """The folder of a file, or the letters with which its name begins."""
    path = PurePosixPath(name)
    if len(path.parts) > 1:
        return path.parts[-2]
    return re.match(r"[A-Za-z]*", path.name)[0]  # type: ignore[index]
