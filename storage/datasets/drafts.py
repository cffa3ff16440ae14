"""Drafts: what an edition declares, made together with another edition so that both read the download once.

The files that prepare.py computes are written, and the draft says what else there is to do. Which of that can be taken
from the other edition is found out when the dataset is prepared, after the other one has been committed.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from competitions.preparing.declaration import Archive
from storage.datasets.checkpoint import DRAFTS, Checkpoint
from storage.datasets.job import Job
from storage.datasets.manifest import Columns, Done
from storage.datasets.plan import pack, unpack
from storage.datasets.reuse import Known
from storage.datasets.work import Copies, Task
from storage.writers import Destination


class Draft(NamedTuple):
    """What a job's prepare.py declares, after what it computed has been written.

    Args:
        rows: rows of the manifest of the files that are written.
        elsewhere: the tasks for any process.
        archives: the archives of the edition that the dataset is to be like, if they are known.
        left_out: what was left out of train, for the commit marker.
    """

    rows: Columns
    elsewhere: Sequence[Task | Copies]
    archives: list[Known] | None
    left_out: list[dict[str, Any]]


def save_draft(job: Job, draft: Draft) -> None:
    """Save the draft of a job; its files have to be written."""
    packed = {
        "like": job.like,
        "like_edition": job.like_edition,
        "rows": draft.rows,
        "elsewhere": [pack(task) for task in draft.elsewhere],
        "archives": [[known.whole, pack(Task("", known.name, known.archive))] for known in draft.archives or ()],
        "left_out": draft.left_out,
    }
    _checkpoint(job).save_draft(packed)


def load_draft(job: Job) -> Draft | None:
    """The draft of a job; None if there is none, for another dataset than the job is to be like, or a file is gone."""
    found = _checkpoint(job).load_draft() if job.key and job.like else None
    if found is None or (found["like"], found["like_edition"]) != (job.like, job.like_edition):
        return None
    if not _written(found["rows"], Destination(job.out)):
        return None
    elsewhere = [task for task in map(unpack, found["elsewhere"]) if isinstance(task, Task | Copies)]
    return Draft(found["rows"], elsewhere, list(_known(found["archives"])), found["left_out"])


def _known(packed: Iterable[tuple[bool, list[Any]]]) -> Iterable[Known]:
    for whole, archive in packed:
        task = unpack(archive)
        if isinstance(task, Task) and isinstance(task.operation, Archive):
            yield Known(task.path, task.operation, whole)


def _written(rows: Columns, destination: Destination) -> bool:
    """Whether all files of these rows are there with their sizes."""
    part, path, size = (rows[Done._fields.index(name)] for name in ("part", "path", "bytes"))
    try:
        return all(
            destination.fs.info(destination.path(f"{top}/{name}"))["size"] == bytes_
            for top, name, bytes_ in zip(part, path, size, strict=True)
        )
    except FileNotFoundError:
        return False


def _checkpoint(job: Job) -> Checkpoint:
    # By the key alone: the plan of a dataset that is like another one has a name of its own.
    return Checkpoint(Destination(job.out, DRAFTS), job.key)
