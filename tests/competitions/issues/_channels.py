"""Channels by which public files could give away labels of test rows, and a scan of those that our code makes.

Miniatures are synthetic: what is in their images, how large their files are and which values their tables have says
nothing about the real data. What our code makes of the data is the same, though: orders, names, numbers, archives,
sample submissions, columns and further files. A scan puts the test rows in the order that a channel suggests and asks
whether equal labels follow one another more often than in random orders. docs/known_issues.md has the list of channels.
"""

from __future__ import annotations

import tarfile
import zipfile
import zlib
from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from random import Random

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from competitions.facts import OTHER_COLUMNS
from tests.competitions.issues._probe import World, drawn_places

Order = NDArray[np.float64]
"""A number for each test row, by which a channel orders them."""

_ORDERS = 20_000  # random ones, so that the least share is 0.00005
_MOST = 300  # rows that are looked at
UNLIKELY = 1e-4
"""The share of random orders that are as telling, up to which a channel counts as a leak: there are 1,500 scans."""


def leaks(world: World) -> set[str]:
    """The channels by which labels can be told in a miniature."""
    labels = _labels(world)[:_MOST]
    if len(set(labels)) < 2:
        return set()
    numeric = len(set(labels)) > len(labels) / 2
    rng = np.random.default_rng(0)
    random = _likeness(rng.permuted(np.tile(labels, (_ORDERS, 1)), axis=1), numeric=numeric)
    found = set()
    for channel, numbers in orders(world):
        if len(set(numbers)) > 1:
            order = np.lexsort((rng.random(len(labels)), numbers[:_MOST]))
            if np.mean(random >= _likeness(labels[order][None], numeric=numeric)[0]) <= UNLIKELY:
                found.add(channel)
    return found


def orders(world: World) -> Iterator[tuple[str, Order]]:
    """Each channel with the numbers that it gives to the rows of the sample submission."""
    sample = world.sample
    count = len(sample)
    rows = np.arange(count)
    yield "order of rows", rows.astype(float)
    yield "shuffled with a constant seed (pandas)", _number(pd.Series(rows).sample(frac=1, random_state=0))
    python = rows.tolist()
    Random(0).shuffle(python)
    yield "shuffled with a constant seed (Python)", _number(pd.Series(python))
    for share in (0.1, 0.2):
        places = drawn_places(int(count / share), test_size=share)
        if len(places) == count:
            yield f"drawn with a constant seed ({share:.0%})", _number(pd.Series(places))
    key, predicted = _columns(world)
    ids = sample[key]
    yield "ids", _number(ids)
    for column in predicted:
        yield "values of the sample submission", _number(sample[column])
    for name, table in _test_tables(world):
        place = {row: number for number, row in enumerate(table.get(key, ()))}
        if set(ids) <= set(place):
            yield f"order of rows of {name}", _number(ids.map(place))
    for channel, facts in _members(world).items():
        values = [facts.get(row, facts.get(PurePosixPath(row).stem)) for row in ids]
        if all(value is not None for value in values):
            yield channel, np.array(values, dtype=float)


def unexpected_files(world: World) -> list[str]:
    """Public files that no one declared: hidden ones, and those that operating systems leave in archives."""
    names = [path.relative_to(world.public).as_posix() for path in world.public.rglob("*")]
    for path in world.public.rglob("*.zip"):
        names += zipfile.ZipFile(path).namelist()
    parts = {name: set(PurePosixPath(name).parts) for name in names}
    return [n for n, each in parts.items() if any(p.startswith((".", "__MACOSX")) or p == "Thumbs.db" for p in each)]


def columns_of_answers(world: World) -> set[str]:
    """Columns of public test tables whose cells are those of a column of the answers that agents have to predict."""
    answers, sample = world.perfect, world.sample
    predicted = [
        name for name in _columns(world)[1] if name in answers and sorted(answers[name]) != sorted(sample[name])
    ]
    return {
        f"{name}: {column}"
        for name, table in _test_tables(world)
        for column in set(predicted) & set(table.columns)
        if table[column].nunique() > 1 and sorted(table[column]) == sorted(answers[column])
    }


def _columns(world: World) -> tuple[str, list[str]]:
    """The column of ids of the sample submission, and the columns that are predicted."""
    facts = world.prepared.competition.facts.submission
    other = "number" if OTHER_COLUMNS in facts else "any"
    kinds = {name: facts[name].values if name in facts else other for name in world.sample.columns}
    key = next((name for name, kind in kinds.items() if kind == "id"), world.sample.columns[0])
    return key, [name for name, kind in kinds.items() if name != key and kind not in ("id", "any")]


def _labels(world: World) -> NDArray[np.float64]:
    """A number for each row of the sample submission: the label, or the length of a text that occurs only once."""
    key, columns = _columns(world)
    perfect = world.perfect.drop_duplicates(key).set_index(key).reindex(world.sample[key])
    names = [name for name in columns if name in perfect] or list(perfect.columns[:1])
    cells = perfect[names[0]]
    if len(names) > 2:  # a column for each class
        cells = perfect[names].apply(pd.to_numeric, errors="coerce").fillna(0).idxmax(axis=1)
    numbers = pd.to_numeric(cells, errors="coerce")
    if numbers.notna().all():
        return _number(cells)
    if cells.nunique() > len(cells) / 2:
        return np.asarray(cells.fillna("").astype(str).str.len(), dtype=np.float64)
    codes, _ = pd.factorize(cells)
    return np.asarray(codes, dtype=np.float64)


def _likeness(rows: NDArray[np.float64], *, numeric: bool) -> NDArray[np.float64]:
    """How alike neighbours are in each of the rows of labels: the more, the greater."""
    steps = np.abs(np.diff(rows, axis=1))
    return np.asarray(-steps if numeric else steps == 0, dtype=np.float64).sum(axis=1)


def _number(values: pd.Series) -> Order:
    numbers = pd.to_numeric(values, errors="coerce")
    ranks = (numbers if numbers.notna().all() else values.astype(str)).rank(method="dense")
    return np.asarray(ranks, dtype=np.float64)


def _test_tables(world: World) -> Iterator[tuple[str, pd.DataFrame]]:
    for path in sorted(world.public.rglob("*.csv")):
        name = path.relative_to(world.public).as_posix()
        if "test" in name.lower() and path.stat().st_size < 1 << 22:
            yield name, pd.read_csv(path, dtype=str, keep_default_na=False)


def _members(world: World) -> dict[str, dict[str, float]]:
    """What archives of test files state of each member, by its name and by its stem."""
    found: dict[str, dict[str, float]] = {}

    def note(channel: str, name: str, number: float) -> None:
        path = PurePosixPath(name)
        for form in {path.name, path.stem, path.parent.name}:
            found.setdefault(channel, {}).setdefault(form, number)

    def is_test(path: Path) -> bool:
        return "test" in path.relative_to(world.public).as_posix().lower()

    for path in filter(is_test, world.public.rglob("*.zip")):
        for number, info in enumerate(zipfile.ZipFile(path).infolist()):
            note("order in an archive", info.filename, number)
            note("times in an archive", info.filename, float("".join(f"{part:02}" for part in info.date_time)))
            note("extra fields of an archive", info.filename, zlib.crc32(info.extra))
            note("modes in an archive", info.filename, info.external_attr)
    for path in filter(is_test, world.public.rglob("*.tar*")):
        with tarfile.open(path) as archive:
            for number, member in enumerate(archive):
                note("order in an archive", member.name, number)
                note("times in an archive", member.name, member.mtime)
                note("modes in an archive", member.name, member.mode)
    return found
