"""Names of files as prepare.py knows them, whatever a tool or a system has made of them."""

from __future__ import annotations

import contextlib
import re
import unicodedata
from collections.abc import Iterable
from itertools import accumulate

ARCHIVE_SUFFIXES = (".zip", ".7z", ".tar", ".tar.gz", ".tgz")
_LEFTOVER = re.compile(r"(^|/)(__MACOSX/|\._[^/]*\Z|\.DS_Store\Z|Thumbs\.db\Z|desktop\.ini\Z)", re.IGNORECASE)


def is_leftover(name: str) -> bool:
    """Whether macOS or Windows has added the file to a folder or an archive.

    >>> [name for name in ("a/._b.png", "__MACOSX/a", "a/.DS_Store", "a/b.png") if not is_leftover(name)]
    ['a/b.png']
    """
    return _LEFTOVER.search(name) is not None


def folded(name: str) -> str:
    """The same text for names that differ in case or in the encoding of their letters.

    macOS takes letters with accents apart, and does not mark the names in its zip archives as UTF-8.

    >>> folded("Caf\u00e9") == folded("cafe\u0301") == folded("caf\u251c\u2310")
    True
    """
    if not name.isascii():
        with contextlib.suppress(UnicodeError):
            name = name.encode("cp437").decode()
        name = unicodedata.normalize("NFC", name)
    return name.casefold()


def common_folders(names: Iterable[str]) -> list[str]:
    """The folders that contain all of the names, from the outermost on.

    >>> common_folders(["./leaf/train.csv", "./leaf/images/1.jpg"])
    ['./', './leaf/']
    """
    common: list[str] | None = None
    for name in names:
        parts = name.split("/")[:-1]
        if common is None:
            common = parts
        while common != parts[: len(common)]:
            common.pop()
        if not common:
            return []
    return list(accumulate(f"{part}/" for part in common or ()))


def unpacked_folders(archive: str) -> list[str]:
    """The folders in which tools unpack an archive, relative to where it lay: one of its name, or the same one.

    >>> unpacked_folders("train.zip")
    ['train/', 'train.zip/', '']
    """
    folder, slash, name = archive.rpartition("/")
    stem = next((name.removesuffix(suffix) for suffix in ARCHIVE_SUFFIXES if name.endswith(suffix)), name)
    return [f"{folder}{slash}{stem}/", f"{archive}/", f"{folder}{slash}"]
