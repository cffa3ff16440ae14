"""The public scores of a run: what is told of each file, the calls of a day, and the files for the final choice.

Everything is in a folder that outlives the process: a restarted orchestrator continues with the same count and the same
best file. An answer depends on the public rows, the form of the file and earlier answers alone.
"""

from __future__ import annotations

import hashlib
import math
import shutil
import threading
import uuid
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from common import plain_json, trees
from common.jsonlines import JsonLinesLog, parse
from common.units import duration, size
from grading.ladder import Rung, climb, least_step
from grading.workers.endings import TOO_EXPENSIVE
from grading.workers.parts import SHARE

if TYPE_CHECKING:
    from grading.workers import GradingPool

JOURNAL = "public_scores.jsonl"
"""One line for each valid file: number, time, hash, score, standard error, and the best score that was told then."""
FILES = "public_scores"
"""Folder of the files, by number: 1.csv, 2.csv, ..."""
KEPT = (JOURNAL, f"{FILES}/")
"""Beginnings of the paths of what a run needs to continue."""
FINAL = "final.txt"
"""The agent's final choice."""
SUBMISSION = "submission.csv"
KEPT_BYTES = 10 << 30
"""Bytes of all files of a run, beyond which there are no more public scores."""
SCORE_SECONDS = 600.0
"""Time for the standard errors of a file, on both parts, by default."""
_MAX_BYTES = 16 << 20
_DAY = timedelta(days=1)
_HOW = f"{FINAL} must have one or two lines, each the number of a submission with a public score, or {SUBMISSION}"


@dataclass(frozen=True)
class PublicPart:
    """Which part of the test set is public, and how often a run may ask for scores on it."""

    share: float = SHARE
    """Share of the test units."""
    id: str | None = None
    """The column of ids, `Parts.id` of the sample submission."""
    calls_per_day: int = 5


@dataclass(frozen=True)
class Answer:
    """What is told of a file. A message never has the text of an exception, nor anything about answers."""

    outcome: Literal["valid", "invalid", "failed", "refused"]
    message: str | None = None
    submission: int | None = None
    """The number of the file, if it is valid."""
    best: float | None = None
    """The best public score so far, as the Ladder tells it."""
    improved: bool = False
    calls_left: int = 0


class Writing:
    """Permission to write to the folder of a run. `end` waits for a line that is being written."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.ended = False

    def end(self) -> None:
        """Withdraw it."""
        with self.lock:
            self.ended = True


class PublicScores:
    """Answers the public scores of one run, one file at a time."""

    def __init__(
        self,
        grader: GradingPool,
        folder: Path,
        part: PublicPart,
        writing: Writing | None = None,
        seconds: float = SCORE_SECONDS,
    ) -> None:
        """Continue what is in `folder`, or start there.

        Args:
            grader: validates submissions, so that it never scores private rows.
            folder: out of the agent's reach; it exists.
            part: the public part of the test set.
            writing: ends when the run has ended. A file that is being scored then has no answer, and leaves no trace.
            seconds: time for the standard errors of a file, on both parts.
        """
        self._writing = writing or Writing()
        self._grader, self._folder, self._part, self._seconds = grader, folder, part, seconds
        self._log = JsonLinesLog(folder / JOURNAL, _MAX_BYTES)
        self._best: Rung | None = None
        self._number = 0
        self._times: list[datetime] = []
        for record in self._log.records():
            self._number = max(self._number, int(record["number"]))
            self._times.append(datetime.fromisoformat(record["time"]))
            self._best = self._climb(record["score"], record["standard_error"])

    def answer(self, submission: Path) -> Answer:
        """The answer to a file, which is kept if it is valid. A file that is not valid does not count as a call."""
        if self._writing.ended:
            return Answer("failed")
        now = _now()
        if refusal := self._over_limit(now):
            return Answer("refused", refusal, None, self._shown)
        files = self._folder / FILES
        files.mkdir(exist_ok=True, mode=0o700)
        # Before it is scored, so that nobody can change it in between. Another name each time, for the rest of a run
        # that has ended may still be scored when it is begun anew.
        copy = files / f"new-{uuid.uuid4().hex}.csv"
        digest = _copy(submission, copy)
        try:
            grade, parts = self._grader.parts(copy, self._part.share, self._part.id, self._seconds)
            if grade.outcome == "invalid" and not str(grade.message).startswith(TOO_EXPENSIVE):
                return Answer("invalid", grade.message, None, self._shown, calls_left=self._left(now))
            if self._grader.broken is not None:  # whatever the file
                return Answer("failed")
            # A file on which the grader fails, or which takes too long, counts: this may depend on the answers as well.
            public = parts.public if parts is not None else None
            score, error = (public.score, public.standard_error) if public is not None else (None, None)
            with self._writing.lock:
                if self._writing.ended:
                    return Answer("failed")
                before, self._best = self._best, self._climb(score, error)
                self._number += 1
                copy.replace(files / f"{self._number}.csv")  # before its line: without a file, it could not be graded
                self._times.append(now)
                record: dict[str, Any] = {"time": now.isoformat(), "number": self._number, "sha256": digest}
                record |= {"score": score, "standard_error": error, "told": self._shown}
                self._log.append(record, durable=True)
        finally:
            copy.unlink(missing_ok=True)
        told = score is not None and error is not None and math.isfinite(error)
        note = None if told else "it has no public score"  # why may depend on the answers
        improved = self._best is not before
        return Answer("valid", note, self._number, self._shown, improved=improved, calls_left=self._left(now))

    @property
    def _shown(self) -> float | None:
        return self._best.shown if self._best is not None else None

    def _climb(self, score: float | None, error: float | None) -> Rung | None:
        if score is None or error is None:
            return self._best
        limits = self._grader.thresholds
        least, lower = least_step(limits), limits.lower_is_better
        return climb(self._best, float(score), float(error), lower_is_better=lower, least_step=least)

    def _left(self, now: datetime) -> int:
        return max(self._part.calls_per_day - sum(now - time < _DAY for time in self._times), 0)

    def _over_limit(self, now: datetime) -> str | None:
        if not self._left(now):
            oldest = sorted(self._times)[-self._part.calls_per_day]
            wait = duration(max(1, math.ceil((oldest + _DAY - now).total_seconds())))
            return f"all {self._part.calls_per_day} public scores of the last 24 hours are used up; try again in {wait}"
        if self._log.full:
            return "the journal of public scores is full"
        if sum(path.stat().st_size for path in (self._folder / FILES).glob("*.csv")) > KEPT_BYTES:
            return f"the files with public scores have more than {size(KEPT_BYTES)}"
        return None


def begin_anew(folder: Path) -> None:
    """Remove what is in the folder of a run that is started from scratch."""
    for path in (folder / JOURNAL, *(folder / FILES).glob("*.csv")):
        path.unlink(missing_ok=True)


def kept(folder: Path) -> dict[str, Path]:
    """The journal and the files with public scores, by their paths in the folder of the run."""
    names = [JOURNAL, *(f"{FILES}/{number}.csv" for number in _by_number(folder))]
    return {name: folder / name for name in names if (folder / name).is_file()}


def take_over(folder: Path, earlier: Path) -> None:
    """Let a run that continues have what was kept of it elsewhere, in the folder `earlier`.

    What is in its own folder already counts as well, except for numbers that were given again elsewhere: the agent that
    continues knows the files that have them there.
    """
    there = _by_number(earlier)
    if not there:
        return
    (folder / FILES).mkdir(parents=True, exist_ok=True, mode=0o700)
    for number in there:
        shutil.copyfile(earlier / FILES / f"{number}.csv", folder / FILES / f"{number}.csv")
    lines = [plain_json.dumps(record) for _, record in sorted({**_by_number(folder), **there}.items())]
    draft = folder / f"{JOURNAL}.new"
    draft.write_text("".join(f"{line}\n" for line in lines), "utf-8")
    draft.replace(folder / JOURNAL)


def _by_number(folder: Path) -> dict[int, dict[str, Any]]:
    path = folder / JOURNAL
    return {int(record["number"]): record for record in parse(path.read_bytes())} if path.exists() else {}


def numbers(folder: Path) -> set[str]:
    """The numbers of the files with public scores."""
    return set(map(str, _by_number(folder)))


def final_choice(text: bytes, choices: Iterable[str]) -> tuple[list[str] | None, str | None]:
    r"""The final choice in the content of `FINAL`, which an agent has written; None with the reason if it has none.

    A submission that there is not is left out, with a note, if there is the other one.

    >>> final_choice(b"3\nsubmission.csv\n", {"1", "2", "3", "submission.csv"})
    (['3', 'submission.csv'], None)
    >>> final_choice(b"1\nsubmission.csv\n", {"1"})
    (['1'], 'only 1 of final.txt counts: it names submission.csv, and there is no such submission')
    >>> final_choice(b"7", {"1"})[1]
    'final.txt is ignored: it names 7, and there is no such submission'
    """
    lines = [line.strip() for line in text.decode("utf-8", "replace").splitlines() if line.strip()]
    chosen = list(dict.fromkeys(lines))
    if not 1 <= len(chosen) <= 2:
        return None, f"{FINAL} is ignored: {_HOW}"
    if not all(name.isdecimal() or name == SUBMISSION for name in chosen):
        return None, f"{FINAL} is ignored: {_HOW}"
    there = set(choices)
    known = [name for name in chosen if name in there]
    if known == chosen:
        return chosen, None
    missing = next(name for name in chosen if name not in there)
    head = f"only {known[0]} of {FINAL} counts" if known else f"{FINAL} is ignored"
    return known or None, f"{head}: it names {missing[:20]}, and there is no such submission"


def _now() -> datetime:
    return datetime.now(UTC)


def _copy(source: Path, target: Path) -> str:
    """Copy a regular file, following no link; returns its SHA-256."""
    digest = hashlib.sha256()
    target.unlink(missing_ok=True)
    with trees.opened_file(source) as descriptor, target.open("xb") as copy:
        for piece in trees.pieces(descriptor):
            digest.update(piece)
            copy.write(piece)
    return digest.hexdigest()
