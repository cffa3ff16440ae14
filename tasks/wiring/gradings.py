"""What there is to grade, and what of it is graded: without Prefect, which takes long to import."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from functools import partial

from common.causes import explain
from competitions import registry
from competitions.editions import Edition
from competitions.fingerprints import closure, digest, module_file, shown
from grading.medals import Leaderboard, Thresholds
from storage.dataset import Dataset
from storage.datasets.answers import answers_to
from storage.keys import content_key
from storage.runs.folders import RunFolder, folders
from storage.runs.records import GradeRecord, RunRecord
from storage.store import Store
from tasks.wiring.requests import Attempt, GradeRequest, run_name
from tasks.wiring.stores import open_store
from tasks.wiring.thresholds import chosen_thresholds


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
        key=grade_key(attempt.key, attempt.dataset, Thresholds.of(facts)),
    )


def grade_requests(store: Store, run_group: str, leaderboard: Leaderboard) -> Iterator[GradeRequest | Ungradable]:
    """The grading of each finished run of a group, in the edition that the run was made for."""
    found = folders(store, run_group)
    records = store.concurrently([partial(_record_or_error, folder) for folder in found])
    for folder, run in zip(found, records, strict=True):
        name, seed = folder.competition_id, folder.seed
        if run is None:
            continue
        try:
            if isinstance(run, Exception):
                raise run
            thresholds = chosen_thresholds(store, registry.get(name).facts, leaderboard)
            key = grade_key(run.key, dataset_for(store, run, run.edition), thresholds)
        except Exception as error:  # a damaged record, a broken competition: this run's own bad luck
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
    except Exception as error:  # of a damaged record; the other runs are graded
        return error


@dataclass(frozen=True)
class Ungradable:
    """A run that cannot be graded, and why."""

    name: str
    reason: str


def grade_key(run_key: str, dataset: Dataset, thresholds: Thresholds) -> str:
    """The content key of a grade: the run, the dataset with the answers, all code that counts, the thresholds."""
    competition = registry.get(dataset.competition_id)
    return content_key(
        "grade",
        run_key,
        dataset.edition,
        dataset.key,
        competition.grader_fingerprint(dataset.edition),
        _code_of_reports(),
        asdict(thresholds),
    )


def _code_of_reports() -> str:
    """The fingerprint of what makes a report with medals of a score."""
    used = closure(module_file("grading.report"))
    return digest("report", {shown(path): path for path in used.files})


def dataset_for(store: Store, run: RunRecord, edition: Edition) -> Dataset:
    """The dataset to grade a run with; see `answers_to`. Raises `UserError` if there is no such dataset."""
    return answers_to(store, Dataset(run.edition, run.competition_id, run.dataset_key), edition, f"run {run.name}")


def finished_grade(request: GradeRequest) -> GradeRecord | None:
    """The grade record if the run is graded under the same key, otherwise None."""
    record = graded_folder(request).read_grade()
    # A failed grading is a bug of the grader, so the run is graded again.
    return record if record is not None and record.key == request.key and record.outcome != "failed" else None


def graded_folder(request: GradeRequest) -> RunFolder:
    """The folder of the run to grade."""
    return RunFolder(open_store(request.store), request.run_group, request.competition_id, request.seed)
