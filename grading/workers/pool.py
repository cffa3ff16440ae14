"""Grade any number of submissions of one competition in separate processes."""

from __future__ import annotations

import json
import os
import subprocess
import tempfile
import threading
from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from types import TracebackType
from typing import IO, TYPE_CHECKING, Any, ClassVar, Self

from common import plain_json, starting
from competitions.scoring.errors import InvalidSubmission
from grading.grade import Grade, grade_of
from grading.medals import Thresholds
from grading.workers.endings import Verdict, killed, missing, server_ended, unreadable
from grading.workers.halves import DRAWS, SECONDS, Halves
from grading.workers.limits import GradingLimits, bounds_of, check_file, submission_exists
from grading.workers.parts import SHARE, Parts

if TYPE_CHECKING:
    from competitions.competition import Competition
    from competitions.editions import Edition

_MAX_RESTARTS = 2  # of the process with the answers, which never reads submissions, so they cannot be why it ended
_MAX_ERROR_BYTES = 4000  # of its output, of which the end is shown
_MAX_DRAWN = 4  # submissions for each worker that are drawn and not returned yet
_THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMEXPR_NUM_THREADS")


def grading_environment(own: Mapping[str, str]) -> dict[str, str]:
    """The environment of the process with the answers, made from that of this process: submissions are hostile."""
    return {**starting.without_secrets(own), **dict.fromkeys(_THREADS, "1")}  # forking is not safe with threads


@dataclass
class _Submission:
    """A submission whose grade has not been returned yet."""

    number: int
    path: Path | None
    shown: str | None
    verdict: Verdict | None
    further: dict[str, Any] | None = None
    """Options of what is asked for besides its score."""
    killed: int | None = None
    """The memory that its worker took when it was killed."""


class GradingPool:
    """Grades submissions of one competition in worker processes. Close it, or use it in a `with` statement.

    The answers are parsed once, in a process that forks a worker for each submission, up to `workers` at a time. No
    submission can therefore change the answers for another one. Several threads can use one grader; their calls are
    serialised.
    """

    _has_answers: ClassVar[bool] = True

    def __init__(
        self,
        competition: Competition,
        prepared: Path,
        edition: Edition = "v1",
        *,
        limits: GradingLimits | None = None,
        workers: int = 1,
        thresholds: Thresholds | None = None,
        validating: bool = False,
    ) -> None:
        """`thresholds` default to those of competition.yaml. With `validating`, valid submissions have no score."""
        self.competition, self.prepared, self.edition = competition, Path(prepared), edition
        self.bounds = bounds_of(competition, self.prepared, limits or GradingLimits())
        self.workers = max(1, workers)
        self.thresholds = thresholds or Thresholds.of(competition.facts)
        self._validating = validating
        self._process: subprocess.Popen[bytes] | None = None
        self._errors: IO[bytes] | None = None
        self._broken: Verdict | None = None
        self._lock = threading.RLock()

    def grade(self, submission: Path | None, shown_path: str | None = None) -> Grade:
        """Grade the CSV `submission`. Never raises because of its content. `shown_path` is the path in the report."""
        return next(self.grade_all([(submission, shown_path)]))

    def grade_all(self, submissions: Iterable[Path | tuple[Path | None, str | None] | None]) -> Iterator[Grade]:
        """Yield grades in the order of `submissions`, which are paths, pairs of path and reported path, or None."""
        with self._lock:
            waiting: deque[_Submission] = deque()  # in input order; the verdict is None until a worker has finished
            try:
                yield from self._grade_all(enumerate(submissions), waiting)
            finally:
                if any(submission.verdict is None for submission in waiting):
                    self.close()  # nothing will read the outstanding replies

    def _grade_all(
        self, source: Iterator[tuple[int, Path | tuple[Path | None, str | None] | None]], waiting: deque[_Submission]
    ) -> Iterator[Grade]:
        restarts, exhausted = 0, False
        while True:
            # Few are drawn at a time, even if they need no worker: they may be copies on a scratch disk.
            while (
                not exhausted
                and sum(submission.verdict is None for submission in waiting) < 2 * self.workers
                and len(waiting) < _MAX_DRAWN * self.workers
            ):
                number, item = next(source, (-1, None))
                if number < 0:
                    exhausted = True
                    break
                path, shown = item if isinstance(item, tuple) else (item, None)
                submission = _Submission(number, path, shown, self._refuse(path))
                waiting.append(submission)
                if submission.verdict is None:
                    self._send(submission)
            while waiting and waiting[0].verdict is not None:
                yield self._grade(waiting.popleft())
            if any(submission.verdict is None and submission.killed is None for submission in waiting):
                reply = self._receive()
                if reply is None:
                    restarts += 1
                    self._restart(waiting, restarts)
                else:
                    _note(next(submission for submission in waiting if submission.number == reply["id"]), reply)
            elif any(submission.verdict is None for submission in waiting):
                first = next(submission for submission in waiting if submission.verdict is None)
                first.verdict = self._judge(first)
            elif exhausted:
                return

    def _judge(self, submission: _Submission) -> Verdict:
        """The verdict on a submission whose worker was killed. No other submission is graded at the same time."""
        first, submission.killed = submission.killed or 0, None
        self._ask_alone(submission)
        if submission.verdict is not None:
            return submission.verdict
        right_answers = _Submission(-1, self.prepared / self.competition.facts.files.gold_submission, None, None)
        right_peak: int | None = 0
        if right_answers.path is not None and right_answers.path.is_file():
            right_peak = self._ask_alone(right_answers)
        return killed(max(first, submission.killed or 0), None if right_answers.killed is not None else right_peak)

    def _ask_alone(self, submission: _Submission) -> int:
        """Grade one submission, and note its verdict or that its worker was killed. Returns the memory that it took."""
        self._send(submission)
        reply = self._receive()
        if reply is None:
            submission.verdict = self._broken or server_ended(self._output())
            self.close()
            return 0
        _note(submission, reply)
        return int(reply.get("peak", 0))

    def _grade_alone(self, pending: _Submission) -> Verdict:
        """The verdict on a submission that is graded while no other one is."""
        restarts = 0
        while pending.verdict is None:
            self._send(pending)
            reply = self._receive()
            if reply is not None:
                _note(pending, reply)
                if pending.killed is not None:
                    pending.verdict = self._judge(pending)
                continue
            restarts += 1
            if self._broken is None and restarts > _MAX_RESTARTS:
                self._broken = server_ended(self._output())
            self.close()
            pending.verdict = self._broken
        return pending.verdict

    def halves(self, submission: Path, draws: int = DRAWS, seconds: float = SECONDS) -> tuple[Grade, Halves | None]:
        """The grade of a submission, and its scores on halves of the test set; None without a finite score.

        See `grading.workers.halves.score_halves`. Never raises because of the submission's content.
        """
        grade, found = self._further(submission, {"draws": draws, "seconds": seconds})
        return grade, Halves(**found) if found is not None else None

    def parts(
        self, submission: Path, share: float = SHARE, id: str | None = None, seconds: float = SECONDS
    ) -> tuple[Grade, Parts | None]:
        """The grade of a submission, and its scores on the public and private part; None without a finite score.

        A grader that validates scores the public part alone: nothing then depends on the answers of the private part.
        Never raises because of the submission's content.

        Args:
            submission: the CSV.
            share: share of the test units that are public.
            id: the column of ids, as `Parts.id` of the sample submission has it. By default it is found from this
                submission, which therefore must be trusted.
            seconds: time for the standard errors; 0 for none.
        """
        if not 0 < share < 1:
            raise ValueError(f"the share of public units lies between 0 and 1, not at {share}")
        grade, found = self._further(submission, {"share": share, "id": id, "seconds": seconds})
        return grade, Parts.of(found) if found is not None else None

    def _further(self, submission: Path, options: dict[str, Any]) -> tuple[Grade, dict[str, Any] | None]:
        """The grade of a submission, and what else is asked for."""
        with self._lock:
            pending = _Submission(0, submission, None, self._refuse(submission), options)
            further = self._grade_alone(pending).further
            return self._grade(pending), further

    def close(self) -> None:
        """End the processes. They are restarted if the grader is used again."""
        with self._lock:
            process, self._process = self._process, None
            if process is not None:
                with suppress(OSError):
                    if process.stdin:
                        process.stdin.close()
                try:
                    process.wait(5)
                except subprocess.TimeoutExpired:
                    process.kill()
                    process.wait()
                if process.stdout:
                    process.stdout.close()
            if self._errors is not None:
                self._errors.close()
                self._errors = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    @property
    def broken(self) -> Verdict | None:
        """Why nothing can be graded, whatever the submission: the grader or the answers cannot be read, for example."""
        return self._broken

    def _refuse(self, path: Path | None) -> Verdict | None:
        """The verdict on a path that can be rejected without reading it; None for a file to read."""
        if path is None or not submission_exists(path):
            return missing(path)
        try:
            check_file(path, self.bounds.size_bytes)
        except InvalidSubmission as error:
            return Verdict("invalid", message=str(error))
        except OSError as error:
            return unreadable(error)
        return self._broken

    def _grade(self, submission: _Submission) -> Grade:
        assert submission.verdict is not None
        verdict = submission.verdict
        return grade_of(
            self.competition.id,
            self.thresholds,
            outcome=verdict.outcome,
            score=verdict.score,
            message=verdict.message,
            detail=verdict.detail,
            shown_path=submission.shown or str(submission.path or ""),
        )

    def _send(self, submission: _Submission) -> None:
        """Ask for a verdict."""
        process = self._start()
        assert process.stdin is not None
        request: dict[str, Any] = {"id": submission.number, "path": str(Path(str(submission.path)).absolute())}
        if submission.further:
            request["further"] = submission.further
        with suppress(BrokenPipeError):  # the reply, or its absence, gives the reason
            process.stdin.write(plain_json.dumps(request).encode() + b"\n")
            process.stdin.flush()

    def _receive(self) -> dict[str, Any] | None:
        process = self._start()
        assert process.stdout is not None
        line = process.stdout.readline()
        reply: dict[str, Any] | None = json.loads(line) if line.endswith(b"\n") else None
        if reply is not None and "fatal" in reply:
            self._broken = Verdict(**reply["fatal"])
            return None
        return reply

    def _restart(self, waiting: deque[_Submission], restarts: int) -> None:
        """Send unanswered submissions to a new process, or give up after too many restarts."""
        if self._broken is None and restarts > _MAX_RESTARTS:
            self._broken = server_ended(self._output())
        self.close()
        for submission in waiting:
            if submission.verdict is None and submission.killed is None:
                submission.verdict = self._broken
                if submission.verdict is None:
                    self._send(submission)

    def _output(self) -> str:
        if self._errors is None:
            return ""
        self._errors.seek(0)
        return self._errors.read()[-_MAX_ERROR_BYTES:].decode("utf-8", "replace")

    def _start(self) -> subprocess.Popen[bytes]:
        if self._process is None:
            self._errors = tempfile.TemporaryFile()  # noqa: SIM115 - closed with the process
            self._process = subprocess.Popen(
                starting.command("grading.workers.server"),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=self._errors,
                env=grading_environment(os.environ),
                start_new_session=True,  # Ctrl-C in a terminal is handled by the parent process
            )
            spec = {
                "folder": str(self.competition.folder.absolute()),
                "prepared": str(self.prepared.absolute()) if self._has_answers else None,
                "edition": self.edition,
                "bounds": asdict(self.bounds),
                "workers": self.workers,
                "validating": self._validating,
            }
            assert self._process.stdin is not None
            self._process.stdin.write(plain_json.dumps(spec).encode() + b"\n")
            self._process.stdin.flush()
        return self._process


def _note(submission: _Submission, reply: dict[str, Any]) -> None:
    """Note what the server replied about a submission."""
    if "killed" in reply:
        submission.killed = int(reply["killed"])
    else:
        submission.verdict = Verdict(**reply["verdict"])
