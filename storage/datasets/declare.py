"""Run prepare.py, write what it computes, and save the plan for the rest."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

from competitions.preparing.declaration import LeftOut
from competitions.preparing.download import Download
from storage.datasets.checkpoint import DRAFTS, Checkpoint
from storage.datasets.commit import DESCRIPTION, read_manifest_of
from storage.datasets.execute import execute
from storage.datasets.job import Job, Preparable, download_of, load_competition
from storage.datasets.memory import release_memory
from storage.datasets.plan import plan
from storage.datasets.reuse import Known, archives_of, with_archives, with_reuse
from storage.datasets.storable import require_storable
from storage.datasets.traces import written_in_order
from storage.datasets.work import Copies, Same, Task, group_copies
from storage.writers import Destination

if TYPE_CHECKING:
    from competitions.editions import Edition


def declare(job: Job) -> None:
    """Run prepare.py on a worker, write what it computed, and save the plan for the rest."""
    competition, destination, download = load_competition(job), Destination(job.out, DRAFTS), download_of(job)
    declared = run_prepare(job, competition, download, destination)
    rows = execute(declared.here, competition, download, destination)
    declared.write_description(destination)
    elsewhere, left_out = declared.elsewhere, declared.counts()
    del declared  # frees tables, which may be large
    release_memory()
    checkpoint = Checkpoint(destination, job.checkpoint)
    checkpoint.save_left_out(left_out)
    destination.sync()
    checkpoint.save_rows("declared", rows)
    checkpoint.save_plan(plan(_taken(job, elsewhere, download, destination), download))
    release_memory()


class Declared(NamedTuple):
    """What prepare.py declares: tasks with content that it computed, for this process, and those for any process."""

    here: list[Task]
    elsewhere: list[Task | Copies]
    description: bytes | None
    left_out: list[LeftOut]

    def counts(self) -> list[dict[str, Any]]:
        """What was left out of train, for the commit marker; complete once the tasks for this process are executed."""
        return [asdict(each) for each in self.left_out]

    def write_description(self, destination: Destination) -> None:
        """Write the text for agents, unless it is one of the prepared files."""
        if self.description is not None:
            destination.write(f"public/{DESCRIPTION}", [self.description])


def run_prepare(job: Job, competition: Preparable, download: Download, destination: Destination) -> Declared:
    """Run prepare.py. Nothing is written."""
    preparation = competition.declare(download, job.edition, job.params)
    require_storable(preparation, destination)
    checked = competition.facts.checksums.prepared
    tasks = group_copies(preparation.operations(), checked)
    own = DESCRIPTION in preparation.public.operations
    return Declared(
        [task for task in tasks if isinstance(task, Task) and task.computed],
        [task for task in tasks if isinstance(task, Copies) or not task.computed],
        None if own else competition.describe(job.edition).encode(),
        preparation.left_out,
    )


def _taken(
    job: Job, elsewhere: list[Task | Copies], download: Download, destination: Destination
) -> Iterable[Task | Copies | Same]:
    """The tasks for any process: what the dataset that this one is to be like has is taken from it."""
    tasks: Iterable[Task | Copies | Same] = elsewhere
    if job.like:
        manifest = read_manifest_of(Destination(job.like))
        tasks = with_reuse(tasks, manifest, job.like)
        if job.like_edition:
            archives = partial(_archives_of_other, job, job.like_edition, download)
            tasks = with_archives(tasks, manifest, job.like, archives, download)
    return written_in_order(tasks, download) if destination.local else tasks


def _archives_of_other(job: Job, edition: Edition, download: Download) -> Iterable[Known]:
    preparation = load_competition(job).declare(download, edition, job.params)
    return archives_of([Task(*each) for each in preparation.operations()])
