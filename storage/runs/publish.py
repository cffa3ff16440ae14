"""Store the files of a run, and then its record: readers find the old run, the new one, or none, never a mixture.

The files of a run are usually in the folder of the run. Where that has a run already, or another process may still be
writing to it, they are in a folder `try-<number>` of it that no other process uses, and the record names that folder.
"""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from storage.exclusive import create
from storage.lease import Lease, LeaseLost
from storage.runs.evidence.group_manifest import append
from storage.runs.evidence.ledger import seal
from storage.runs.files import RUN, TRY, is_grade
from storage.runs.folders import RunFolder
from storage.runs.records import RunRecord
from storage.store import Store


def publish(folder: RunFolder, record: RunRecord, files: Mapping[str, Path], held: Lease, key: str | None) -> None:
    """Store a run, in place of an earlier one of the folder.

    Args:
        folder: folder of the run.
        record: the complete record, without the seal.
        files: local path of every file, by its path in the folder.
        held: the lease of the run.
        key: signing key of the evidence; see `seal`.

    Raises:
        LeaseLost: another process has taken over the run. Nothing of it was changed.
    """
    held.require_held()
    store = folder.store
    replaced = folder.finished()
    old_paths = _paths(store, folder)
    if replaced or held.contested:
        folder = replace(folder, files=_unused(held.generation, old_paths))
        record = record.replace(files=folder.files)
    else:  # files of a process that was killed while it stored them
        _remove(store, folder, old_paths)
        old_paths = []
    store.put_many(folder.files_url, files)
    sealed = seal(folder, record, files, key)
    held.require_held()
    # The entry comes before the record: a run with an entry that is not stored is made again, but a stored run without
    # an entry would never get one.
    run = f"{folder.competition_id}/{folder.seed}"
    append(store, folder.run_group, key, "recorded", run=run, head=sealed.ledger_head, status=sealed.status)
    if not replaced:
        _write_first(folder, sealed)
    else:
        # Grades of the old run must never be next to the record of the new one. They can be made again.
        _remove(store, folder, [path for path in old_paths if is_grade(path)])
        folder.write_run(sealed)
    _remove(store, folder, [path for path in old_paths if path != RUN and not is_grade(path)])


def _write_first(folder: RunFolder, record: RunRecord) -> None:
    """Write the first record of a run. A process that has lost the lease cannot replace the record of another one."""
    store = folder.store
    path = store.top.path(store.relative(folder.run_url))
    store.top.sync()  # as in `write_run`
    if not create(store.top.fs, path, store.json_bytes(record.to_json()), store.top.local):
        raise LeaseLost(f"run {folder.name}: another process has stored it; run the same command again to see it")
    store.top.sync()


def _unused(generation: int, paths: list[str]) -> str:
    """A name for a folder that has no files."""
    name = f"{TRY}{generation}"
    while any(path.startswith(f"{name}/") for path in paths):
        name += "x"  # somebody removed the locks
    return name


def _paths(store: Store, folder: RunFolder) -> list[str]:
    """Paths of all files in the run's folder."""
    top = store.top.path(store.relative(folder.url)) + "/"
    return sorted(str(path).removeprefix(top) for path in store.top.fs.find(top))


def _remove(store: Store, folder: RunFolder, paths: list[str]) -> None:
    top = store.top.path(store.relative(folder.url))
    for path in paths:
        with contextlib.suppress(FileNotFoundError):
            store.top.fs.rm_file(f"{top}/{path}")
    if store.top.local:
        for name in {path.split("/")[0] for path in paths if "/" in path}:
            _remove_empty(Path(top) / name)


def _remove_empty(folder: Path) -> None:
    for path in sorted(folder.rglob("*"), reverse=True):
        if path.is_dir():
            with contextlib.suppress(OSError):
                path.rmdir()
    with contextlib.suppress(OSError):
        folder.rmdir()
