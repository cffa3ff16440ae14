"""Run prepare.py, check that what it declares can be stored, write what it computes, and save the plan for the rest."""

from __future__ import annotations

import contextlib
import os
import unicodedata
from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from common.names import shown
from competitions.errors import BadCompetition
from competitions.preparing.declaration import Archive, Copy, Preparation, Tree
from competitions.preparing.download import Download, Member
from storage.datasets.commit import DESCRIPTION, read_manifest_of
from storage.datasets.execute import execute
from storage.datasets.job import Job, download_of, load_competition, release_memory
from storage.datasets.journal import DRAFTS, Journal
from storage.datasets.plan import Copies, Same, Task, group_copies, plan
from storage.datasets.reuse import Known, archives_of, with_archives, with_reuse
from storage.datasets.write_order import written_in_order
from storage.writers import Destination

if TYPE_CHECKING:
    from competitions.editions import Edition


def declare(job: Job) -> None:
    """Run prepare.py on a worker, write what it computed, and save the plan for the rest."""
    competition, destination, download = load_competition(job), Destination(job.out, DRAFTS), download_of(job)
    preparation = competition.declare(download, job.edition, job.params)
    require_storable(preparation, destination)
    tasks = group_copies(preparation.operations(), competition.facts.checksums.prepared)
    computed = [task for task in tasks if isinstance(task, Task) and task.computed]
    portable = [task for task in tasks if not (isinstance(task, Task) and task.computed)]
    rows = execute(computed, competition, download, destination)
    if DESCRIPTION not in preparation.public.operations:
        destination.write(f"public/{DESCRIPTION}", [competition.describe(job.edition).encode()])
    left_out = [asdict(files) for files in preparation.left_out]  # complete once the computed files are written
    del preparation, tasks, computed  # frees tables, which may be large
    release_memory()
    journal = Journal(destination, job.journal)
    journal.save_left_out(left_out)
    journal.save_rows("declared", rows)
    journal.save_plan(plan(_taken(job, portable, download, destination), download))
    release_memory()


def _taken(
    job: Job, portable: list[Task | Copies], download: Download, destination: Destination
) -> Iterable[Task | Copies | Same]:
    """The tasks for any process. Files that the similar dataset already has are taken from it."""
    tasks: Iterable[Task | Copies | Same] = portable
    if job.like:
        manifest = read_manifest_of(Destination(job.like))
        tasks = with_reuse(tasks, manifest, job.like)
        if job.like_edition:
            archives = partial(_archives_of_other, job, job.like_edition, download)
            tasks = with_archives(tasks, manifest, job.like, archives, download)
    return written_in_order(tasks, download) if destination.local else tasks


def _archives_of_other(job: Job, edition: Edition, download: Download) -> Iterable[Known]:
    preparation = load_competition(job).declare(download, edition, job.params)
    return archives_of([Task(*operation) for operation in preparation.operations()])


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
    """How the disk of `folder` folds names; None if it distinguishes all names. The folder is created."""
    folder.mkdir(parents=True, exist_ok=True)
    probe = folder / f".probe-\u00e9-{os.urandom(6).hex()}"
    try:
        probe.touch()
        composed = os.path.lexists(folder / unicodedata.normalize("NFD", probe.name))
        case = os.path.lexists(folder / probe.name.replace("probe", "PROBE"))
    except OSError:  # the disk does not support such a name; writing will fail with a message
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
    paths: dict[str, str] = {}
    for path in _with_folders(tree.operations):
        other = paths.setdefault(folding(path), path)
        if other != path:
            raise BadCompetition(
                f"{tree.part}/ would have both {shown(other)} and {shown(path)}, which this disk takes for the same; "
                "choose a store on another disk"
            )


def _with_folders(paths: Iterable[str]) -> Iterator[str]:
    """The paths and those of all folders above them, each once."""
    folders_seen: set[str] = set()
    for path in paths:
        while path and path not in folders_seen:
            folders_seen.add(path)
            yield path
            path = path.rpartition("/")[0]


def _members(tree: Tree) -> Iterator[Member]:
    for operation in tree.operations.values():
        if isinstance(operation, Copy):
            yield operation.member
        elif isinstance(operation, Archive):
            yield from (entry for _, entry in operation.entries if isinstance(entry, Member))
