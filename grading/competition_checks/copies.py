"""Test rows, texts, images and other files that are in the training data as well."""

from __future__ import annotations

import hashlib
import re
from typing import TYPE_CHECKING

from competitions.preparing.copies import copied
from grading.competition_checks.public_files import PublicFile, test_files, training_files
from grading.competition_checks.subject import Skipped

if TYPE_CHECKING:
    import pandas as pd

    from grading.competition_checks.measured import Measured
    from grading.competition_checks.task_tables import TaskTables

MIN_SHARE = 0.01
"""Share of the test rows from which copies count."""
_MIN_COPIES = 2
_MIN_TEXT = 40
"""Characters of a text that occurs twice only if it is a copy."""
_MIN_COLUMNS = 3
"""Columns of a row that occurs twice only if it is a copy; values of one or two are often equal."""
_MAX_COLUMNS = 100
"""Columns by which rows are compared, the first ones of both parts."""
_MAX_FILES = (1_000, 4_000)
"""Files of the test set and of the training data that are compared, the first by name."""
_MAX_ROWS = 200_000
"""The same for the rows of either part."""
_MIN_PIXELS = 64
"""Pixels of a side of images that are compared by what they show: smaller ones have no fine detail."""


def copies(measured: Measured) -> list[str]:
    """No test row has a near duplicate in the training data: row, text, image, or file with the same bytes."""
    tables = measured.tables
    files = test_files(measured.files, tables.answers.index)
    others = training_files(measured.files, files)
    found: dict[str, tuple[int, int]] = {}
    if tables.test is not None and tables.train is not None:
        found |= _rows(tables, tables.test.head(_MAX_ROWS), tables.train.head(_MAX_ROWS))
    if files and others:
        found |= _files(list(files.values()), others)
    if not found:
        raise Skipped("no rows with several columns, long texts or files are found in both parts")
    measured.figures["copies"] = {kind: count / total for kind, (count, total) in found.items()}
    return [
        f"{count} of {total} {kind} of the test set have a copy in the training data"
        for kind, (count, total) in found.items()
        if count >= max(_MIN_COPIES, MIN_SHARE * total)
    ]


def _rows(tables: TaskTables, test: pd.DataFrame, train: pd.DataFrame) -> dict[str, tuple[int, int]]:
    """Counts of copies by kind: whole rows, and texts of each column of long texts."""
    import numpy as np
    import pandas as pd

    shared = [name for name in tables.features if name in train][:_MAX_COLUMNS]
    hashes = [np.zeros(len(part), np.uint64) for part in (test, train)]  # of rows: 8 bytes each, however wide they are
    said = np.zeros(len(test), int)  # cells that are neither empty nor 0, without which a row is another by chance
    found = {}
    for name in shared:
        plain, plain_train = (part[name].map(_plain) for part in (test, train))
        for place, cells in enumerate((plain, plain_train)):
            hashes[place] = hashes[place] * np.uint64(31) + pd.util.hash_array(cells.to_numpy(), categorize=False)
        said += ~plain.isin(("", "0", "nan")).to_numpy()
        if plain.str.len().median() >= _MIN_TEXT:
            is_copy = (plain.str.len() >= _MIN_TEXT) & plain.isin(plain_train)
            found[f"texts in {name}"] = int(is_copy.sum()), len(test)
    if len(shared) >= _MIN_COLUMNS:
        copied_rows = np.isin(hashes[0], hashes[1]) & (said >= _MIN_COLUMNS)
        found = {"rows": (int(copied_rows.sum()), len(test)), **found}
    return found


def _plain(cell: str) -> str:
    """A cell without what near duplicates differ in: case, punctuation and space of texts, far digits of numbers."""
    try:
        return f"{float(cell):.6g}"
    except ValueError:
        return re.sub(r"[\W_]+", " ", cell.lower()).strip()


def _files(test: list[PublicFile], others: list[PublicFile]) -> dict[str, tuple[int, int]]:
    """Counts of copies: of images by what they show, of small ones and of other files by their bytes."""
    if min(next((shape for file in test if (shape := file.shape())), (0, 0))) >= _MIN_PIXELS:
        images, train = ([file for file in part if file.is_image] for part in (test, others))
        images = images[: _MAX_FILES[0]]
        is_copy = copied(map(PublicFile.read, images), map(PublicFile.read, train[: _MAX_FILES[1]]))
        return {"images": (int(is_copy.sum()), len(images))}
    test = test[: _MAX_FILES[0]]
    sizes = {file.size for file in test} & {file.size for file in others}
    digests = {_digest(file) for file in [file for file in others if file.size in sizes][: _MAX_FILES[1]]}
    return {"files": (sum(file.size in sizes and _digest(file) in digests for file in test), len(test))}


def _digest(file: PublicFile) -> bytes:
    digest = hashlib.blake2b()
    with file.open() as content:
        while block := content.read(1 << 20):
            digest.update(block)
    return digest.digest()
