"""Files that are named after the rows of a table: pictures, sounds, texts."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from dataclasses import dataclass, replace
from pathlib import PurePosixPath
from typing import TYPE_CHECKING

from common.units import counted
from competitions.proposals.findings import Finding
from competitions.proposals.layout import part_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from competitions.proposals.columns import Columns, Labels
    from competitions.proposals.layout import Layout

_ROWS = 200  # rows whose files are looked for
_MOST = 0.8  # of the rows have a file of a pattern
_WIDTHS = (0, 3, 4, 5, 6, 8, 12)  # to which numbers may be filled with zeros


@dataclass(frozen=True)
class FileSet:
    """Files of rows.

    Attributes:
        archive: the archive in the download that contains them; "" if none.
        pattern: their names, with `{}` for the cell of `column`. With `**` they are in folders of other names.
        folder: whether all files below the folder of this name belong to the row.
    """

    archive: str
    pattern: str
    column: str
    folder: bool = False
    missing: int = 0
    """How many of the first rows have no such file."""
    only_train: bool = False
    """Whether Kaggle has such files of training rows only, as masks are."""


def file_sets(layout: Layout, columns: Columns) -> Finding[list[FileSet]]:
    """The sets of files for the rows of the table with labels; not sure if files are named in another way."""
    labels = columns.labels.value
    if labels is None:
        return Finding([], "files are not assigned to rows", not any(layout.files.values()))
    if labels.of_folders:
        return Finding([], "besides those in the folders of classes", True)
    found: list[FileSet] = []
    rest = 0
    for archive, names in layout.files.items():
        sets = _sets(archive, names, labels)
        found += sets
        rest += sum(
            not any(_belongs(name, each) for each in sets) and part_of(f"{archive}/{name}") != "test" for name in names
        )
    found, doubt = _without_answers(found, layout, columns)
    if missing := [each for each in found if each.missing]:
        doubt = f"{missing[0].missing} of the first rows have no file {missing[0].pattern}"
    elif rest > max(20, sum(map(len, layout.files.values())) / 4):
        doubt = f"{rest} files are not named after a column of {labels.table.name}"
    left_out = f"; left out: {counted(rest, 'other file')}" if rest else ""
    named = "named after the rows" if found else "no files but tables are named after the rows"
    return Finding(found, doubt or f"{named}{left_out}", not doubt)


def _without_answers(found: list[FileSet], layout: Layout, columns: Columns) -> tuple[list[FileSet], str]:
    """The sets, of which those that Kaggle has of training rows only may tell answers; and what is doubted."""
    names = [f"{archive}/{name}" for archive, files in layout.files.items() for name in files]
    names += [table.path for table in layout.tables]  # such as the only file in test/, if it is in JSON
    given = []
    for each in sorted(found, key=lambda each: -len(each.pattern)):  # 7-outline.json belongs to {}-outline.json first
        theirs = list(_matches(each, names, "test"))
        alike = bool(theirs) and "train" in f"{each.archive}/{each.pattern}"
        if alike or not _test_ids(each, columns).isdisjoint(match["id"] for match in theirs):
            given.append(each)
            taken = set() if each.folder else {match[0] for match in theirs}
            names = [name for name in names if name not in taken]
    if not given and len(found) > 1:
        patterns = ", ".join(each.pattern for each in found)
        return found, f"Kaggle's files of test rows are not in the download: are all of {patterns} known of test rows?"
    doubt = next(filter(None, (_only_in_train(each, names) for each in given)), "")
    return [replace(each, only_train=bool(given) and each not in given) for each in found], doubt


def _test_ids(each: FileSet, columns: Columns) -> set[str]:
    """How files of the rows of Kaggle's test set are named."""
    rows = []
    if columns.test is not None and each.column in columns.test.columns:
        rows.append(columns.test.rows[each.column])
    if columns.sample.value is not None and columns.labels.value and each.column == columns.labels.value.ids:
        rows.append(columns.sample.value.rows[columns.ids.value[0]])
    width = re.search(r"\{:0(\d+)\}", each.pattern)
    return {str(cell).zfill(int(width[1]) if width else 0) for cells in rows for cell in cells.dropna().unique()}


def _only_in_train(each: FileSet, names: list[str]) -> str:
    """Says which files most folders of training rows have, and no folder of test rows."""
    if not each.folder:
        return ""
    train, test = (list(_matches(each, names, part)) for part in ("train", "test"))
    known = {match["rest"] for match in test}
    count = len({match["id"] for match in train})
    usual = [rest for rest, number in Counter(match["rest"] for match in train).items() if number > _MOST * count]
    answers = [rest for rest in usual if rest not in known]
    missing = ", ".join(answers[:4])
    return f"folders of test rows have no {missing} on Kaggle: leave out what tells the answer" if answers else ""


def _matches(each: FileSet, names: list[str], part: str) -> Iterator[re.Match[str]]:
    """The names of the set, in the folder or archive of this part: "id" is what stands for the row."""
    pattern = f"{each.archive}/{each.pattern}".replace("train", part)
    before, after = (re.escape(text) for text in re.split(r"\{.*?\}", pattern, maxsplit=1))
    any_folder = before.replace(re.escape("**/"), "(?:.*/)?")
    expression = re.compile(f"{any_folder}(?P<id>[^/]+){after}(?P<rest>{'.*' if each.folder else ''})")
    return filter(None, map(expression.fullmatch, names))


def _belongs(name: str, each: FileSet) -> bool:
    before, _, after = each.pattern.replace("**/", "").partition("{")
    return name.startswith(before) and (each.folder or name.endswith(after.partition("}")[2]))


def _sets(archive: str, names: list[str], labels: Labels) -> list[FileSet]:
    """The patterns that most of the first rows have."""
    index: dict[str, list[tuple[str, bool]]] = defaultdict(list)  # the pattern of each name, by its variable part
    for name in names:
        if {"{", "}"} & set(name):  # they stand for the row in patterns
            continue
        *folders, base = PurePosixPath(name).parts
        for number, part in enumerate(folders):
            index[part].append(("/".join([*folders[:number], "{}/"]), True))
        stem, dot, suffix = base.partition(".") if base.count(".") == 1 else base.rpartition(".")
        first = re.split("[-_]", stem, maxsplit=1)[0]  # several files of a row, such as 7_red.png and 7_blue.png
        for part, end in ((base, "{}"), (stem, f"{{}}{dot}{suffix}"), (first, f"{{}}{base[len(first) :]}")):
            index[part].append(("/".join([*folders, end]), False))
            if len(folders) > 1:
                index[part].append(("/".join([folders[0], "**", end]), False))
    found: dict[str, FileSet] = {}
    for column in dict.fromkeys([labels.ids, *labels.table.columns]):
        if column in labels.source or column not in labels.table.rows:
            continue
        cells = labels.table.rows[column].dropna()
        if cells.empty:
            continue
        cells = cells.drop_duplicates().head(_ROWS)
        whole = cells.dtype.kind in "iu"
        if len(cells) < min(5, len(labels.table.rows)):
            continue
        for width in _WIDTHS if whole else (0,):
            padded = [str(cell).zfill(width) for cell in cells]
            counts = Counter(pattern for cell in padded for pattern in set(index.get(cell, ())))
            for (pattern, folder), count in counts.items():
                if count > _MOST * len(cells) and not any(_same(pattern, other) for other in found):
                    named = f"{{:0{width}}}" if width else "{}"
                    found[pattern] = FileSet(archive, pattern.replace("{}", named), column, folder, len(cells) - count)
    plain = {pattern for pattern in found if "**" not in pattern}
    covered = {pattern.split("/")[0] for pattern in plain}
    return [each for pattern, each in sorted(found.items()) if pattern in plain or pattern.split("/")[0] not in covered]


def _same(pattern: str, other: str) -> bool:
    """Whether both name the same files, as `a/{}` does with a column of names and `a/{}.jpg` with one of stems."""
    return pattern in (other, other.partition(".")[0], f"{other}/")
