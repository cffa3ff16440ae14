"""Requests to grade runs, their thresholds and graders, and which of them are graded already.

This module does not import Prefect, which takes long.
"""

from __future__ import annotations

import atexit
import os
import threading
from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from functools import cache, partial

from common.causes import explain
from common.errors import UserError
from competitions import registry
from competitions.editions import Edition
from competitions.facts import CompetitionFacts
from competitions.fingerprints import closure, digest, module_file, shown
from grading.leaderboards import thresholds
from grading.medals import STORED, Leaderboard, Thresholds
from grading.workers import GraderCache
from storage.dataset import Dataset
from storage.datasets.prepared import answers_to
from storage.keys import content_key
from storage.runs.folders import RunFolder, folders
from storage.runs.records import GradeRecord, RunRecord
from storage.sources.kaggle.leaderboard import read_leaderboard
from storage.store import Store
from tasks.wiring.context import open_store
from tasks.wiring.requests import Attempt, GradeRequest, run_name

_PRIVATE_PART = ("grading.feedback.private_part", "grading.workers.parts")
"""The code that divides a test set and grades the private part."""


def grade_request(attempt: Attempt) -> GradeRequest:
    """The request to grade an attempt with the stored leaderboard, in the edition of its run."""
    request = attempt.request
    facts = registry.get(attempt.competition_id).facts
    return GradeRequest(
        store=request.store,
        run_group=request.run_group,
        competition_id=attempt.competition_id,
        seed=attempt.seed,
        edition=request.edition,
        key=grade_key(attempt.key, attempt.dataset, Thresholds.of(facts), has_feedback=_has_feedback(attempt)),
    )


def _has_feedback(attempt: Attempt) -> bool:
    """Whether the run has feedback. One whose test set cannot be divided has none, although it was requested."""
    request = attempt.request
    if request.feedback is None:
        return False
    folder = RunFolder(open_store(request.store), request.run_group, attempt.competition_id, attempt.seed)
    run = folder.read_run()
    return run is None or run.feedback is not None


def grade_requests(store: Store, run_group: str, leaderboard: Leaderboard) -> Iterator[GradeRequest | Ungradable]:
    """The grading of each finished run of a group, in the edition that the run was made for."""
    run_folders = folders(store, run_group)
    records = store.concurrently([partial(_record_or_error, folder) for folder in run_folders])
    for folder, run in zip(run_folders, records, strict=True):
        name, seed = folder.competition_id, folder.seed
        if run is None:
            continue
        try:
            if isinstance(run, Exception):
                raise run
            thresholds = chosen_thresholds(store, registry.get(name).facts, leaderboard)
            dataset = dataset_for(store, run, run.edition)
            key = grade_key(run.key, dataset, thresholds, has_feedback=run.feedback is not None)
        except Exception as error:  # a damaged record, a broken competition: only this run fails
            yield Ungradable(run_name(name, seed), explain(error))
            continue
        yield GradeRequest(
            store=store.root,
            run_group=run_group,
            competition_id=name,
            seed=seed,
            edition=run.edition,
            key=key,
            leaderboard=leaderboard,
        )


def _record_or_error(folder: RunFolder) -> RunRecord | Exception | None:
    try:
        return folder.read_run()
    except Exception as error:  # the record is damaged; the other runs are graded
        return error


@dataclass(frozen=True)
class Ungradable:
    """A run that cannot be graded, and why."""

    name: str
    reason: str


def grade_key(run_key: str, dataset: Dataset, thresholds: Thresholds, *, has_feedback: bool = False) -> str:
    """The content key of a grade: the run, the dataset with the answers, all code that counts, the thresholds.

    The key of a run contains the share of public test units. With feedback, the code that grades the private part
    counts, too.
    """
    competition = registry.get(dataset.competition_id)
    return content_key(
        "grade",
        run_key,
        dataset.edition,
        dataset.key,
        competition.grader_fingerprint(dataset.edition),
        _code("report", "grading.report"),
        asdict(thresholds),
        *([_code("private part", *_PRIVATE_PART)] if has_feedback else []),
    )


def _code(label: str, *modules: str) -> str:
    """The fingerprint of these modules and of what they import."""
    return digest(label, {shown(path): path for name in modules for path in closure(module_file(name)).files})


def dataset_for(store: Store, run: RunRecord, edition: Edition) -> Dataset:
    """The dataset to grade a run with; see `answers_to`. Raises `UserError` if there is no such dataset."""
    return answers_to(store, Dataset(run.edition, run.competition_id, run.dataset_key), edition, f"run {run.name}")


def finished_grade(store: Store, request: GradeRequest) -> GradeRecord | None:
    """The grade record if the run is graded under the same key, otherwise None."""
    record = graded_folder(store, request).read_grade()
    # A failed grading is a bug of the grader, so the run is graded again.
    return record if record is not None and record.key == request.key and record.outcome != "failed" else None


def graded_folder(store: Store, request: GradeRequest) -> RunFolder:
    """The folder of the run to grade."""
    return RunFolder(store, request.run_group, request.competition_id, request.seed)


# Without the lock, threads that make the first call at the same time would get different caches.
_lock = threading.Lock()


def process_graders() -> GraderCache:
    """The graders that the tasks of this process share. They are closed when the process ends."""
    with _lock:
        return _graders()


# Global, because Prefect passes only small values to tasks: this is how the tasks of a process share graders.
@cache
def _graders() -> GraderCache:
    graders = GraderCache()
    atexit.register(graders.close)
    return graders


def _forget_graders() -> None:
    """In a process that was forked: the graders belong to the process before, and a thread of it may hold the lock."""
    global _lock
    _lock = threading.Lock()
    _graders.cache_clear()


os.register_at_fork(after_in_child=_forget_graders)


def chosen_thresholds(store: Store, facts: CompetitionFacts, leaderboard: Leaderboard) -> Thresholds:
    """The thresholds to grade with: those of competition.yaml, or of the most recently fetched leaderboard.

    Raises `UserError` if none was fetched; the message names the command that fetches it.
    """
    if leaderboard == STORED:
        return Thresholds.of(facts)
    if facts.source != "kaggle":
        raise UserError(f"{facts.id} is not on Kaggle and only has its stored leaderboard; use --leaderboard stored")
    table = read_leaderboard(store, facts.id)
    if table is None:
        raise UserError(
            f"{facts.id}: no leaderboard was fetched into {store.root}; run: mlebench leaderboard {facts.id} --refresh "
            f"--store {store.shown(store.root)}"
        )
    scores = [float(score) for score in table["score"].dropna()]
    return replace(thresholds(scores, facts), leaderboard=f"{leaderboard} {table['fetched_at'].iloc[0]}")
