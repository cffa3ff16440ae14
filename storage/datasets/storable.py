"""Whether the files of a declaration can exist beside each other where they are to be written.

Checked when a dataset is declared. Otherwise a worker would fail in the middle, or a file would silently replace
another one on a disk that takes both names for the same.
"""

from __future__ import annotations

import contextlib
import os
import unicodedata
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

from common.names import shown
from competitions.errors import BadCompetition
from competitions.preparing.declaration import Archive, Copy, Preparation, Tree
from competitions.preparing.download import Member
from storage.writers import Destination

Folding = Callable[[str], str]
"""Maps names that a disk takes for the same to the same text."""


def require_storable(preparation: Preparation, destination: Destination) -> None:
    """Raise `BadCompetition` if two files exclude each other, or a member's name cannot be written to the manifest."""
    folding = folding_of(Path(destination.drafts or destination.root)) if destination.local else None
    for tree in (preparation.public, preparation.private):
        _require_no_file_as_folder(tree)
        if folding:
            _require_distinct(tree, folding)
        members = list(_members(tree))
        for member in [] if "".join(member.name for member in members).isascii() else members:
            if not member.name.isascii() and any("\ud800" <= letter <= "\udfff" for letter in member.name):
                raise BadCompetition(
                    f"{shown(str(member))} is a file of the download whose name is not valid UTF-8; omit it, or rename "
                    "it in the archive"
                )


def folding_of(folder: Path) -> Folding | None:
    """What the disk of `folder` makes of names; None if it keeps all of them apart. The folder is created."""
    folder.mkdir(parents=True, exist_ok=True)
    probe = folder / f".probe-\u00e9-{os.urandom(6).hex()}"
    try:
        probe.touch()
        composed = os.path.lexists(folder / unicodedata.normalize("NFD", probe.name))
        case = os.path.lexists(folder / probe.name.replace("probe", "PROBE"))
    except OSError:  # a disk that cannot hold such a name; writing will say so
        return None
    finally:
        with contextlib.suppress(OSError):
            probe.unlink()
    if not (composed or case):
        return None

    def fold(name: str) -> str:
        name = unicodedata.normalize("NFC", name) if composed else name
        return name.casefold() if case else name

    return fold


def _require_no_file_as_folder(tree: Tree) -> None:
    folders: set[str] = set()
    for path in tree.operations:
        while (path := path.rpartition("/")[0]) and path not in folders:
            folders.add(path)
    for path in folders & tree.operations.keys():
        raise BadCompetition(f"{tree.part}/{path} is declared as a file, and other files are declared below it")


def _require_distinct(tree: Tree, folding: Folding) -> None:
    found: dict[str, str] = {}
    for path in _with_folders(tree.operations):
        other = found.setdefault(folding(path), path)
        if other != path:
            raise BadCompetition(
                f"{tree.part}/ would have both {shown(other)} and {shown(path)}, which this disk takes for the same; "
                "choose a store on another disk"
            )


def _with_folders(paths: Iterable[str]) -> Iterator[str]:
    """The paths and those of all folders above them, each once."""
    known: set[str] = set()
    for path in paths:
        while path and path not in known:
            known.add(path)
            yield path
            path = path.rpartition("/")[0]


def _members(tree: Tree) -> Iterator[Member]:
    for operation in tree.operations.values():
        if isinstance(operation, Copy):
            yield operation.member
        elif isinstance(operation, Archive):
            yield from (entry for _, entry in operation.entries if isinstance(entry, Member))
