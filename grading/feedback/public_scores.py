"""The public scores of a run: what is told of each file, the count of calls, and the files for the final choice.

Everything is in a folder that outlives the process: a restarted orchestrator continues with the same count and the same
best file. An answer depends on the public rows, the form of the file and earlier answers alone.
"""

from __future__ import annotations

import hashlib
import math
import shutil
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from common.jsonlines import JsonLinesLog
from grading.ladder import Rung, climb, least_step
from grading.workers.halves import SECONDS

if TYPE_CHECKING:
    from grading.workers import GradingPool

JOURNAL = "public_scores.jsonl"
"""One line for each file that has a public score: number, hash, score, standard error, and what was told."""
FILES = "public_scores"
"""Folder of the files, by number: 1.csv, 2.csv, ..."""
_MAX_BYTES = 16 << 20


@dataclass(frozen=True)
class Answer:
    """What is told of a file. A message never has the text of an exception, nor anything about answers."""

    outcome: Literal["valid", "invalid", "failed"]
    message: str | None = None
    best: float | None = None
    """The best public score so far, as the Ladder tells it."""
    improved: bool = False


class PublicScores:
    """Answers the public scores of one run, one file at a time."""

    def __init__(self, grader: GradingPool, folder: Path, share: float, id: str | None) -> None:
        """Continue what is in `folder`, or start there.

        Args:
            grader: validates submissions, so that it never scores private rows.
            folder: out of the agent's reach; it exists.
            share: share of the test units that are public.
            id: the column of ids, `Parts.id` of the sample submission.
        """
        self._grader, self._folder, self._share, self._id = grader, folder, share, id
        self._log = JsonLinesLog(folder / JOURNAL, _MAX_BYTES)
        self._best: Rung | None = None
        self._number = 0
        for record in self._log.records():
            self._number = max(self._number, int(record["number"]))
            self._best = self._climb(float(record["score"]), float(record["standard_error"]))

    def answer(self, submission: Path) -> Answer:
        """The answer to a file, which is kept if it has a public score."""
        grade, parts = self._grader.parts(submission, self._share, self._id, SECONDS)
        if grade.outcome == "invalid":
            return Answer("invalid", grade.message)
        if grade.outcome != "valid":
            return Answer("failed")
        public = parts.public if parts is not None else None
        if public is None or not math.isfinite(public.standard_error):  # why may depend on the answers
            return Answer("valid", "it has no score that can be told", self._shown)
        self._keep(submission, public.score, public.standard_error)
        before, self._best = self._best, self._climb(public.score, public.standard_error)
        return Answer("valid", None, self._shown, self._best is not before)

    @property
    def _shown(self) -> float | None:
        return self._best.shown if self._best is not None else None

    def _climb(self, score: float, error: float) -> Rung | None:
        limits = self._grader.thresholds
        return climb(self._best, score, error, lower_is_better=limits.lower_is_better, least_step=least_step(limits))

    def _keep(self, submission: Path, score: float, error: float) -> None:
        """Keep the file, then its line: a line without a file would be chosen, and could not be graded."""
        self._number += 1
        files = self._folder / FILES
        files.mkdir(exist_ok=True, mode=0o700)
        draft = files / f"{self._number}.new"
        shutil.copyfile(submission, draft)
        draft.replace(files / f"{self._number}.csv")
        record: dict[str, Any] = {"time": datetime.now(UTC).isoformat(), "number": self._number}
        record |= {"sha256": hashlib.sha256(submission.read_bytes()).hexdigest(), "score": score}
        self._log.append(record | {"standard_error": error}, durable=True)
