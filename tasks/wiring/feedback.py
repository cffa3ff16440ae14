"""Scores on a public part of the test set: where they are possible, and who answers them in a run.

What a run is told, and how, is in `grading.feedback`. The state is in the run's folder for records, out of the agent's
reach, and belongs to the orchestrator: the process of the services gets only what is told.
"""

from __future__ import annotations

import json
import logging
import math
import shutil
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from common import plain_json
from common.errors import UserError
from common.settings import get_settings
from competitions import registry
from grading.feedback import public_scores as scores
from grading.workers import GradingLimits, GradingPool
from grading.workers.endings import of_the_machine
from sandbox import backend
from sandbox.services.run_services import RECORDS
from sandbox.validation.checker import PublicScore
from storage.dataset import Dataset
from storage.datasets.local_copy import local_copy
from storage.keys import content_key
from storage.store import Store
from tasks.wiring.context import local_cache
from tasks.wiring.requests import RunRequest

READ_SECONDS, GRADE_SECONDS = 120.0, 1200.0
"""Time for reading a file, and for everything that is scored of it."""
CONDITION = "feedback.json"
"""The public part of a run, or why it has none, in its folder for records: it is fixed when the run starts."""
_dividing = threading.Lock()
"""Runs of a competition that begin at the same time in this process find it out one after the other."""
_logger = logging.getLogger(__name__)


class DivisionFailed(UserError):
    """It was not found out whether a test set can be divided, because of the limits or the state of this machine."""

    kind = "limits"


@dataclass(frozen=True)
class Division:
    """Whether a test set can be divided into a public and a private part."""

    id: str | None = None
    """The column of ids."""
    problem: str | None = None
    """Why it cannot be divided; for the operator, because it may depend on the answers."""


def division_of(store: Store, dataset: Dataset, share: float) -> Division:
    """Whether the test set can be divided. It is found out once on each host, which takes up to some minutes.

    A test set can be divided if a submission has a score on both parts, with a standard error on the public one: the
    sample submission, or the right answers, as some metrics do not exist for constant predictions.

    Raises:
        DivisionFailed: it could not be found out. Nothing is remembered then.
    """
    fingerprint = registry.get(dataset.competition_id).grader_fingerprint(dataset.edition)
    key = content_key("division", dataset.competition_id, dataset.edition, dataset.key, share, fingerprint)
    path = get_settings().scratch / "divisions" / f"{key}.json"
    try:
        return Division(**json.loads(path.read_text("utf-8")))
    except (OSError, ValueError, TypeError):
        with _dividing:
            found = _division(store, dataset, share)
    path.parent.mkdir(parents=True, exist_ok=True)
    with TemporaryDirectory(dir=path.parent) as folder:
        (Path(folder) / path.name).write_text(plain_json.dumps(asdict(found)), "utf-8")
        (Path(folder) / path.name).replace(path)
    return found


def _division(store: Store, dataset: Dataset, share: float) -> Division:
    competition = registry.get(dataset.competition_id)
    files = competition.facts.files
    with (
        local_copy(store, dataset, "private", local_cache()) as prepared,
        GradingPool(competition, prepared, dataset.edition, limits=_limits()) as grader,
        TemporaryDirectory() as folder,
    ):
        sample = Path(folder) / "sample.csv"  # the public part of the dataset may be large, and be elsewhere
        sample.write_bytes(store.read(f"{store.prepared(dataset)}/{files.sample_submission}"))
        id, problem, failure, grader_failure = None, None, None, None
        for path in (sample, prepared / files.gold_submission):
            grade, parts = grader.parts(path, share, id, scores.SCORE_SECONDS)
            reason = grade.message if parts is None else parts.message
            if of_the_machine(reason) or (parts and parts.public and parts.public.out_of_time):
                failure = reason or "the time for the noise of a score on its public part was over"
            elif parts is None and grade.outcome == "failed":  # by an error of the grader, perhaps about this file
                grader_failure = reason
            elif parts is not None:
                id = id or parts.id
                if reason is None and parts.public is not None and math.isfinite(parts.public.standard_error):
                    return Division(parts.id)
                problem = reason or "the noise of a score on its public part cannot be measured"
        if problem is None:
            failure = failure or grader_failure
        if failure is not None:
            raise DivisionFailed(
                f"it is not known whether the test set of {dataset.competition_id} can be divided ({failure}); "
                "run again when this machine has less to do"
            )
        return Division(problem=problem or "neither its sample submission nor its answers can be scored")


def _limits() -> GradingLimits:
    return GradingLimits(read_seconds=READ_SECONDS, grade_seconds=GRADE_SECONDS)


def public_part(
    request: RunRequest, store: Store, dataset: Dataset, begun: Path | None = None
) -> scores.PublicPart | str | None:
    """The public part of the test set of a run, or why there is none; None without feedback.

    Args:
        request: says which part.
        store: has the dataset.
        dataset: that of the run.
        begun: the work directory of a run that has begun, in which this is noted.

    Raises:
        UserError: it cannot be divided, and the request does not want the run then.
        DivisionFailed: it is not known whether it can be divided.
    """
    if request.feedback is None:
        return None
    if begun is not None and (noted := _noted(begun / RECORDS / CONDITION)) is not None:
        return noted
    division = division_of(store, dataset, request.feedback)
    if division.problem is None:
        return scores.PublicPart(request.feedback, division.id, request.feedback_calls)
    if request.feedback_required:
        raise UserError(not_divided({dataset.competition_id: division.problem}) + REMEDY)
    return division.problem


def note(records: Path, feedback: scores.PublicPart | str | None) -> None:
    """Note what `public_part` has found, in the folder for records of a run that begins."""
    if feedback is None:
        return
    records.mkdir(parents=True, exist_ok=True, mode=0o700)
    content = {"missing": feedback} if isinstance(feedback, str) else {"part": asdict(feedback)}
    draft = records / f"{CONDITION}.new"
    draft.write_text(plain_json.dumps(content), "utf-8")
    draft.replace(records / CONDITION)


def take_over(records: Path, earlier: Path) -> None:
    """Let a run that continues have the public part with which it began elsewhere, if that was kept in `earlier`."""
    if (earlier / CONDITION).is_file():
        shutil.copyfile(earlier / CONDITION, records / CONDITION)


def _noted(path: Path) -> scores.PublicPart | str | None:
    try:
        content = json.loads(path.read_text("utf-8"))
        return scores.PublicPart(**content["part"]) if "part" in content else str(content["missing"])
    except (OSError, ValueError, TypeError, KeyError):  # a run that began before there was this file
        return None


REMEDY = (
    "; give --feedback a larger share if a part has too few units, leave these competitions out of -c, or leave out "
    "--feedback-required to run them without feedback"
)


def not_divided(problems: dict[str, str]) -> str:
    """Which test sets cannot be divided, and why.

    >>> not_divided({"digits": "3 units are too few"})
    'test sets cannot be divided into a public and a private part: digits (3 units are too few)'
    """
    named = ", ".join(f"{name} ({problem})" for name, problem in problems.items())
    return f"test sets cannot be divided into a public and a private part: {named}"


def texts(competition_id: str, part: scores.PublicPart) -> backend.PublicScores:
    """What the agent is told of public scores."""
    metric = registry.get(competition_id).facts.metric
    return backend.PublicScores(f"{metric.name}, {metric.direction} is better", part.share, part.calls_per_day)


@contextmanager
def answering(
    store: Store, dataset: Dataset, part: scores.PublicPart, workdir: Path, writing: scores.Writing
) -> Iterator[Callable[[Path], PublicScore]]:
    """A checker that answers with public scores. It scores nothing but public rows."""
    competition = registry.get(dataset.competition_id)
    with (
        local_copy(store, dataset, "private", local_cache(patience=READ_SECONDS)) as prepared,
        GradingPool(competition, prepared, dataset.edition, limits=_limits(), validating=True) as grader,
    ):
        answers = scores.PublicScores(grader, workdir / RECORDS, part, writing)

        def answer(file: Path) -> PublicScore:
            found = answers.answer(file)
            if found.outcome == "failed":
                _logger.error("a file of a run of %s could not be scored", dataset.competition_id)
            return PublicScore(**asdict(found))

        yield answer


@dataclass(frozen=True)
class Chosen:
    """What is stored of the public scores of a run that has ended, and of the agent's final choice."""

    files: dict[str, Path] = field(default_factory=dict)
    """By their paths in the folder of the run."""
    conditions: dict[str, Any] = field(default_factory=dict)
    """Fields of the run's record."""
    note: str | None = None
    """What the record says of it."""


def chosen(feedback: scores.PublicPart | str | None, workdir: Path, result: backend.RunResult) -> Chosen:
    """The public scores of a run that has ended; `feedback` is that of `public_part`."""
    if feedback is None:
        return Chosen()
    if isinstance(feedback, str):
        return Chosen(
            conditions={"feedback_missing": feedback},
            note=f"without feedback, as the test set cannot be divided: {feedback}",
        )
    files = scores.kept(workdir / RECORDS)
    fields = {"feedback": feedback.share, "feedback_calls_per_day": feedback.calls_per_day, "feedback_id": feedback.id}
    if result.final is None:
        return Chosen(files, fields)
    names = scores.numbers(workdir / RECORDS) | ({scores.SUBMISSION} if result.submission is not None else set())
    final, note = scores.final_choice(result.final.read_bytes(), names)
    return Chosen({**files, scores.FINAL: result.final}, fields if final is None else {**fields, "final": final}, note)
