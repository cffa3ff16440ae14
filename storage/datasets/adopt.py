"""Adopt datasets that the published benchmark has prepared, instead of downloading and preparing them again.

The published layout is `<directory>/<competition id>/prepared/public` and `private`, with the same files as a dataset
of edition v1. The files with published MD5s (tables, answers, sample submissions) are compared before anything is
written. All files are hashed for the manifest, linked if the store is on the same file system, and otherwise copied or
uploaded. The download is not known, so the dataset has a recipe of its own, and counts as prepared until it is renewed.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from common.concurrency import bounded_map, parallel_map
from common.errors import UserError
from common.units import listed
from competitions.competition import Competition
from competitions.editions import Edition
from storage.dataset import Dataset
from storage.datasets.commit import DESCRIPTION, commit
from storage.datasets.current import find, make_current, read_current
from storage.datasets.job import ADOPTED, Job, Recipe
from storage.datasets.journal import DRAFTS
from storage.datasets.manifest import Done, columns_of, manifest_of, table_of
from storage.datasets.materialise import Progress
from storage.datasets.verify import ChecksumMismatch, check_dataset
from storage.keys import content_key_of_rows
from storage.lease import lease, prepare_lease
from storage.sources.kaggle.pages import OFFICIAL
from storage.store import Store
from storage.writers import BLOCK_BYTES, MAX_BYTES_IN_FLIGHT, MAX_TRANSFERS, Destination, Written

EDITION: Edition = "v1"
PARTS = ("public", "private")
MAX_READERS = 8  # files read at the same time; disks and hashing are busy with that


@dataclass(frozen=True)
class FoundFile:
    """A file to adopt: its part, its path in the part, its size in bytes, and its time of change in nanoseconds."""

    part: str
    path: str
    bytes: int
    mtime_ns: int


@dataclass(frozen=True)
class Adopted:
    """What was adopted: the dataset, its files and bytes, and how many files were compared with published MD5s."""

    dataset: Dataset
    files: int
    bytes: int
    compared: int


def prepared_folder(directory: Path, competition_id: str) -> Path | None:
    """The folder with `public` and `private` of a competition in the published layout; None if there is none."""
    for folder in (directory / competition_id / "prepared", directory / competition_id):
        if any((folder / part).is_dir() for part in PARTS):
            return folder
    return None


def adopt(
    store: Store,
    competition: Competition,
    folder: Path,
    *,
    link: bool = True,
    compare: bool = True,
    on_progress: Callable[[Progress], None] = lambda _: None,
) -> Adopted:
    """Make the files below `folder` the current dataset of edition v1.

    An interrupted adoption can be repeated. A dataset that was adopted from the same unchanged files is not written
    again.

    Args:
        store: store of the dataset.
        competition: the competition.
        folder: the folder with `public` and `private`. Links in it are followed.
        link: whether files may be linked instead of copied. A linked file changes with the original.
        compare: whether the files with published MD5s must have them.
        on_progress: called after each file.

    Raises:
        UserError: files are missing, or something is neither a file nor a folder.
        ChecksumMismatch: files differ from the published ones.
    """
    files = list_files(folder)
    require_complete(files, competition, folder)
    dataset = Dataset(EDITION, competition.id)
    if compare:
        require_published(competition, folder)
    rows = ((file.part, file.path, file.bytes, file.mtime_ns) for file in files)
    recipe = Recipe(EDITION, content_key_of_rows(str(folder.resolve()), rows), ADOPTED, {})
    keyed = Dataset(EDITION, competition.id, recipe.key)
    with lease(store, prepare_lease(dataset)) as preparing_lease:
        if find(store, keyed) is None:
            destination = Destination(store.prepared(keyed), DRAFTS)
            done = list(_written(destination, folder, files, competition, link, on_progress))
            _write_texts(destination, folder, competition)
            assert preparing_lease is not None  # it waits
            preparing_lease.require_held()
            job = Job(competition.id, str(folder), store.prepared(keyed), EDITION, key=recipe.key, recipe=recipe)
            commit(destination, manifest_of([table_of(columns_of(done))]), job)
        if read_current(store, dataset).dataset != keyed:
            make_current(store, keyed, recipe)
    compared = check_dataset(store, keyed, competition) if compare else 0
    return Adopted(keyed, len(files), sum(file.bytes for file in files), compared)


def list_files(folder: Path) -> list[FoundFile]:
    """All files of both parts, sorted by part and path, without descriptions. Links to files and folders are followed.

    Raises `UserError` for a link without a target or in a circle, and for anything that is neither a file nor a folder.
    """
    return sorted(
        (file for part in PARTS for file in _below(folder / part, part, "", ())),
        key=lambda file: (file.part, file.path),
    )


def _below(folder: Path, part: str, prefix: str, ancestors: tuple[str, ...]) -> Iterator[FoundFile]:
    real_folder = os.path.realpath(folder)
    if real_folder in ancestors:
        raise UserError(f"{folder} is a link to a folder that contains it")
    try:
        entries = list(os.scandir(folder))
    except FileNotFoundError:
        return
    for entry in entries:
        if entry.is_dir():
            yield from _below(folder / entry.name, part, f"{prefix}{entry.name}/", (*ancestors, real_folder))
        elif entry.is_file():
            if (part, prefix + entry.name) != ("public", DESCRIPTION):
                status = entry.stat()
                yield FoundFile(part, prefix + entry.name, status.st_size, status.st_mtime_ns)
        else:
            raise UserError(f"{entry.path} is neither a file nor a folder, or a link that leads nowhere")


def require_complete(files: list[FoundFile], competition: Competition, folder: Path) -> None:
    """Require both parts, and every file that has a published MD5. Raises `UserError` naming what is missing."""
    present = {f"{file.part}/{file.path}" for file in files}
    parts = [part for part in PARTS if any(file.part == part for file in files)]
    missing = [f"{part}/" for part in PARTS if part not in parts]
    expected = competition.facts.checksums.prepared
    missing += sorted(path for path in expected if path.split("/")[0] in parts and path not in present)
    if missing:
        raise UserError(f"{listed(missing)} missing in {folder}")


def require_published(competition: Competition, folder: Path) -> None:
    """Require the published MD5s. Raises `ChecksumMismatch` naming the files that differ."""
    expected = competition.facts.checksums.prepared
    md5s = parallel_map(lambda path: _md5(folder / path), expected)
    different = [path for path, md5 in zip(expected, md5s, strict=True) if md5 != expected[path]]
    if different:
        raise ChecksumMismatch(f"{listed(different)} differ from the published benchmark")


def _written(
    destination: Destination,
    folder: Path,
    files: list[FoundFile],
    competition: Competition,
    link: bool,
    on_progress: Callable[[Progress], None],
) -> Iterator[Done]:
    """Write the files, and yield their rows of the manifest in the same order."""
    checked = competition.facts.checksums.prepared
    count, size, total = 0, 0, sum(file.bytes for file in files)

    def write(file: FoundFile) -> Written:
        name, source = f"{file.part}/{file.path}", os.path.realpath(folder / file.part / file.path)
        linked = destination.link(name, source, name in checked) if link else None
        if linked is not None:
            return linked
        with open(source, "rb") as stream:  # noqa: PTH123
            return destination.copy(name, stream, name in checked, file.bytes)

    calls = ((min(file.bytes, BLOCK_BYTES), partial(write, file)) for file in files)
    written = bounded_map(calls, count=MAX_READERS if destination.local else MAX_TRANSFERS, total=MAX_BYTES_IN_FLIGHT)
    for file, hashes in zip(files, written, strict=True):
        count, size = count + 1, size + hashes.bytes
        on_progress(Progress(count, len(files), size, total))
        yield Done(file.part, file.path, *hashes, "adopted")


def _write_texts(destination: Destination, folder: Path, competition: Competition) -> None:
    """Our description for agents, and that of the published benchmark as the official one."""
    destination.write(f"public/{DESCRIPTION}", [competition.describe(EDITION).encode()])
    theirs = folder / "public" / DESCRIPTION
    if theirs.is_file():
        destination.write(f"public/{OFFICIAL}", [theirs.read_bytes()])


def _md5(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "md5").hexdigest()
