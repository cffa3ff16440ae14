"""Which rows and files belong to kept units.

A table belongs to units if it has a column with their names, or with ids that their rows have. Files belong to units if
a part of their path is such a name.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import PurePosixPath
from typing import Literal

from competitions.variants.records import Entry, Table

Side = Literal["train", "test"] | None
_TABLE_COVERAGE = 0.9
"""Share of the kept units that a column must name to decide about the rows of a table."""
_FILE_COVERAGE = 0.2
"""The same of the files of a folder."""


def side_of(name: str) -> Side:
    """Whether a file belongs to train or to test, by the first folder or name that says so; None if neither."""
    for part in PurePosixPath(name.lower()).parts:
        if "train" in part:
            return "train"
        if "test" in part or "submission" in part:
            return "test"
        if "label" in part:
            return "train"
    return None


def column_of(table: Table, ids: Mapping[str, set[str]]) -> tuple[int, set[str]] | None:
    """The column that says whether a row is kept, and the values to keep; None if the table belongs to no units.

    Args:
        table: the table.
        ids: kept values of the columns that identify units and their rows, most specific first.
    """
    for name, values in ids.items():
        if name in table.columns:
            return list(table.columns).index(name), values
    found = [Counter[str]() for _ in table.columns]
    seen: list[dict[str, set[str]]] = [{name: set() for name in ids} for _ in table.columns]
    for cells in table.rows():
        for number, cell in enumerate(cells):
            for name, values in ids.items():
                if cell in values and cell not in seen[number][name]:
                    seen[number][name].add(cell)
                    found[number][name] += 1
    for name, values in ids.items():
        for number, counts in enumerate(found):
            if values and counts[name] >= _TABLE_COVERAGE * len(values):
                return number, values
    return None


def group_of(entry: Entry) -> tuple[str, str]:
    """Files that are judged together: the folder or archive that says train or test, or the topmost, and the suffix."""
    path = PurePosixPath(entry.name)
    parents = path.parts[:-1]
    depth = next((number for number, part in enumerate(parents) if side_of(part)), 0)
    return "/".join(parents[: depth + 1]), path.suffix.lower()


def tokens(name: str) -> Iterator[tuple[int, str]]:
    """The parts of a path that may name a unit, with the position of each; -1 for the file's name.

    The path is relative to the folder of its group.

    >>> list(tokens("a/b_1.jpg"))
    [(-1, 'a/b_1.jpg'), (-1, 'b_1.jpg'), (-1, 'b_1'), (-1, 'b'), (0, 'a')]
    """
    path = PurePosixPath(name)
    if len(path.parts) > 1:
        yield -1, name
    yield -1, path.name
    if path.suffix:
        yield -1, path.stem
    for match in reversed(list(re.finditer(r"[._-]", path.stem))):
        yield -1, path.stem[: match.start()]
    for position in reversed(range(len(path.parts) - 1)):
        yield position, path.parts[position]


def files_of(names: Sequence[str], values: Mapping[str, set[str]]) -> tuple[set[str], int] | None:
    """The files that belong to kept units, and the position of their name in paths; None if files belong to no units.

    Args:
        names: the files of a group, relative to its folder.
        values: kept values by column.
    """
    wanted = {value for each in values.values() for value in each}
    owners: dict[str, list[tuple[str, int]]] = {}
    for name in names:
        for position, token in tokens(name):
            if token in wanted:
                owners.setdefault(token, []).append((name, position))
    best: tuple[float, list[tuple[str, int]]] = (0.0, [])
    for each in values.values():
        found = [token for token in each if token in owners]
        share = len(found) / len(each)
        if share > best[0]:
            best = share, [owner for token in found for owner in owners[token]]
        if share >= _TABLE_COVERAGE:
            break
    if best[0] < _FILE_COVERAGE:
        return None
    position = Counter(position for _, position in best[1]).most_common(1)[0][0]
    return {name for name, _ in best[1]}, position
