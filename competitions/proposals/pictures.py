"""Files that are named after the rows of a table: pictures, sounds, texts."""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import TYPE_CHECKING

from competitions.proposals.findings import Finding

if TYPE_CHECKING:
    from competitions.proposals.columns import Labels
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


def file_sets(layout: Layout, labels: Labels | None) -> Finding[list[FileSet]]:
    """The sets of files for the rows of the table with labels; not sure if files are named in another way."""
    if labels is None:
        return Finding([], "files are not assigned to rows", not any(layout.files.values()))
    if labels.of_folders:
        return Finding([], "files are those of the folders", True)
    found: list[FileSet] = []
    rest = 0
    for archive, names in layout.files.items():
        sets = _sets(archive, names, labels)
        found += sets
        rest += sum(not any(_belongs(name, each) for each in sets) and not _is_test(name, archive) for name in names)
    for each in found:
        if each.missing:
            return Finding(found, f"{each.missing} of the first rows have no file {each.pattern}", False)
    unknown = rest > max(20, sum(map(len, layout.files.values())) / 4)
    reason = f"{rest} files are not named after a column of {labels.table.name}" if unknown else "named after the rows"
    return Finding(found, reason, not unknown)


def _is_test(name: str, archive: str) -> bool:
    return "test" in f"{archive}/{name}".lower()


def _belongs(name: str, each: FileSet) -> bool:
    before, _, after = each.pattern.replace("**/", "").partition("{")
    return name.startswith(before) and (each.folder or name.endswith(after.partition("}")[2]))


def _sets(archive: str, names: list[str], labels: Labels) -> list[FileSet]:
    """The patterns that most of the first rows have."""
    index: dict[str, list[tuple[str, bool]]] = defaultdict(list)  # the pattern of each name, by its variable part
    for name in names:
        *folders, base = PurePosixPath(name).parts
        for number, part in enumerate(folders):
            index[part].append(("/".join([*folders[:number], "{}/"]), True))
        stem, dot, suffix = base.partition(".") if base.count(".") == 1 else base.rpartition(".")
        for part, end in ((base, "{}"), (stem, f"{{}}{dot}{suffix}")):
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
    return (
        pattern.partition("{}")[0] == other.partition("{}")[0]
        and pattern != other
        and pattern
        in (
            other.partition(".")[0],
            f"{other}/",
        )
    ) or pattern == other
