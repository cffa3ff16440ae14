"""An episode: actions in a sandbox until the agent submits, or until a limit."""

from __future__ import annotations

import contextlib
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

from common.errors import UserError
from grading.feedback.public_scores import PublicScores
from sandbox.docker.engine import EngineUnreachable
from sandbox.errors import BackendError
from sandbox.services.run_services import RECORDS
from sandbox.world.files import entries
from training.actions import INSTRUCTIONS, Action, DataFile, Left, Observation
from training.datasets import TrainingDataset
from training.sandboxes import SUBMISSION, NoSuchFile, Sandbox

_FILES_LISTED = 100


@dataclass(frozen=True)
class EpisodeLimits:
    """The limits of an episode, besides those of its sandbox."""

    seconds: float = 1800.0
    steps: int = 100
    command_seconds: float = 300.0
    scores: int = 20
    public_scores: int = 5
    output_bytes: int = 20_000
    """Bytes that are returned of each output of a command."""
    file_bytes: int = 1_000_000
    """Bytes of a file that are read or written at once."""


@dataclass(frozen=True)
class Step:
    """The outcome of an action."""

    observation: Observation
    reward: float
    terminated: bool = False
    """The agent has submitted."""
    truncated: bool = False
    """A limit was reached, or the sandbox has ended; a submission that exists then counts."""

    @property
    def done(self) -> bool:
        """Whether the episode has ended."""
        return self.terminated or self.truncated


class Episode:
    """One episode. Its methods are called by one thread at a time.

    Copies of the agent's files are in the work directory of the sandbox, with which they are removed.
    """

    def __init__(
        self, id: str, dataset: TrainingDataset, sandbox: Sandbox, limits: EpisodeLimits, seed: int = 0
    ) -> None:
        """Begin. Raises `BackendError` if the sandbox has ended."""
        self.id, self.dataset, self.limits = id, dataset, limits
        self.steps, self.reward, self.ended = 0, 0.0, False
        self.info: dict[str, Any] = {}
        self._sandbox, self._scores, self._public_scores = sandbox, limits.scores, limits.public_scores
        self._ladder: PublicScores | None = None
        sandbox.begin(limits.seconds, seed)
        self._deadline = time.monotonic() + limits.seconds
        self._actions: dict[str, Callable[[Action], Observation]] = {
            "run": self._run,
            "read": self._read,
            "write": self._write,
            "check": self._check,
            "score": self._score,
            "public_score": self._public_score,
        }

    def begun(self) -> Observation:
        """What the agent is told first."""
        content, _ = self._sandbox.read("instructions.txt", 0, self.limits.file_bytes)
        return self._told(
            "The episode has begun.",
            description=self.dataset.description(),
            instructions=content.decode("utf-8", "replace") + INSTRUCTIONS,
            files=list(islice(self._data_files(), _FILES_LISTED)),
        )

    def step(self, action: Action) -> Step:
        """Carry out an action. An action that cannot be carried out says why, and counts as a step.

        Raises:
            UserError: the episode has ended.
        """
        if self.ended:
            raise UserError("the episode has ended: reset the environment")
        self.steps += 1
        if missing := action.missing():
            return self._unless_over(self._told(f"An action {action.type!r} needs {' and '.join(missing)}."))
        if action.type == "submit":
            return self._end("submitted")
        try:
            observation = self._actions[action.type](action)
        except (NoSuchFile, UserError) as error:
            if isinstance(error, BackendError):
                lost = isinstance(error, EngineUnreachable)
                return self._end(f"the sandbox has ended: {self._sandbox.ended or error}", lost=lost)
            observation = self._told(f"Not done: {error}.")
        return self._unless_over(observation)

    def _unless_over(self, observation: Observation) -> Step:
        """The outcome of an action, or the end of the episode if a limit has been reached."""
        reasons = {
            f"the sandbox has ended: {self._sandbox.ended}": self._sandbox.ended is not None,
            f"the limit of {self.limits.seconds:g} seconds was reached": time.monotonic() >= self._deadline,
            f"the limit of {self.limits.steps} steps was reached": self.steps >= self.limits.steps,
        }
        reason = next((text for text, holds in reasons.items() if holds), None)
        return Step(observation, 0.0) if reason is None else self._end(reason, observation)

    def _end(self, reason: str, last: Observation | None = None, *, lost: bool = False) -> Step:
        """Judge the submission, which is copied first: nothing that happens in the sandbox changes it any more."""
        self.ended = True
        with tempfile.TemporaryDirectory(dir=self._sandbox.spec.workdir) as folder:
            submission = Path(folder) / "submission.csv"
            exists = self._sandbox.take_submission(submission, self._sandbox.spec.limits.submission_bytes)
            judgement = self.dataset.judge(submission if exists else Path(folder) / "missing.csv")
        submitted = reason == "submitted"
        self.reward, self.info = judgement.reward, {**judgement.info, "end": reason}
        if not exists:
            self.info["message"] = f"there is no {SUBMISSION}"
        if lost or self._sandbox.lost:
            self.info["failure"] = reason
        verdict = "is valid" if self.info["valid"] else f"is not valid: {self.info['message']}"
        told = self._told(f"The episode has ended: {reason}. The submission {verdict}.", valid=self.info["valid"])
        fields = {name: getattr(last, name) for name in ("stdout", "stderr", "exit_code", "cut")} if last else {}
        return Step(
            told.model_copy(update={**fields, "info": self.info}),
            self.reward,
            terminated=submitted,
            truncated=not submitted,
        )

    def close(self) -> None:
        """End the sandbox and remove everything in it."""
        self.ended = True
        self._sandbox.close()

    def left(self) -> Left:
        """What is left of the limits."""
        seconds = max(self._deadline - time.monotonic(), 0.0)
        return Left(
            steps=max(self.limits.steps - self.steps, 0),
            seconds=round(seconds, 1),
            scores=self._scores,
            public_scores=self._public_scores,
        )

    def _told(self, message: str, **fields: Any) -> Observation:
        return Observation(message=message, left=self.left(), **fields)

    def _run(self, action: Action) -> Observation:
        seconds = min(action.seconds or self.limits.command_seconds, self.limits.command_seconds)
        seconds = max(min(seconds, self._deadline - time.monotonic()), 0.001)
        ran = self._sandbox.run(action.command or "", seconds, self.limits.output_bytes)
        message = f"The command ended after {ran.seconds:.1f} seconds with exit code {ran.exit_code}."
        if ran.exit_code is None:
            message = "The command ended the shell that ran it; the next one has a new shell."
        elif ran.seconds >= seconds:
            message = f"The command was killed after {seconds:g} seconds."
        return self._told(message, stdout=ran.stdout, stderr=ran.stderr, exit_code=ran.exit_code, cut=ran.cut)

    def _read(self, action: Action) -> Observation:
        path = action.path or ""
        content, length = self._sandbox.read(path, action.offset, self.limits.file_bytes)
        end = action.offset + len(content)
        text = content.decode("utf-8", "replace")
        return self._told(f"{path} has {length:,} bytes.", content=text, cut=end < length)

    def _write(self, action: Action) -> Observation:
        path, content = action.path or "", (action.content or "").encode()
        if len(content) > self.limits.file_bytes:
            return self._told(f"Not done: at most {self.limits.file_bytes:,} bytes are written at once.")
        self._sandbox.write(path, content)
        return self._told(f"{path} was written: {len(content):,} bytes.")

    def _check(self, _: Action) -> Observation:
        with self._submission() as submission:
            grade = self.dataset.check(submission)
        valid = grade.outcome == "valid"
        reason = f"is not valid: {grade.message}" if grade.outcome == "invalid" else "could not be checked"
        return self._told(f"The submission {'is valid' if valid else reason}.", valid=valid)

    def _score(self, action: Action) -> Observation:
        if self._scores <= 0:
            return self._told(f"Not done: all {self.limits.scores} scores of this episode are used up.")
        with tempfile.TemporaryDirectory(dir=self._sandbox.spec.workdir) as folder:
            predictions, truth = Path(folder) / "predictions.csv", Path(folder) / "truth.csv"
            self._sandbox.take(action.predictions or "", predictions, self._sandbox.spec.limits.submission_bytes)
            self._sandbox.take(action.truth or "", truth, self._sandbox.spec.limits.submission_bytes)
            self._scores -= 1
            verdict = self.dataset.score(predictions, truth)
        if verdict.outcome == "valid":
            return self._told("The predictions were scored on your truth.", valid=True, score=verdict.score)
        return self._told(f"Not scored: {verdict.message}.", valid=False)

    def _public_score(self, _: Action) -> Observation:
        if self._public_scores <= 0:
            most = self.limits.public_scores
            used_up = f"all {most} public scores of this episode are used up" if most else "there are no public scores"
            return self._told(f"Not done: {used_up}.")
        if self._ladder is None:
            folder = self._sandbox.spec.workdir / RECORDS  # out of the agent's reach, and removed with the sandbox
            folder.mkdir(exist_ok=True, mode=0o700)
            self._ladder = self.dataset.public_scores(folder, self.limits.public_scores)
        with self._submission() as submission:
            answer = self._ladder.answer(submission)
        if answer.outcome == "invalid":
            return self._told(f"The submission is not valid: {answer.message}.", valid=False)
        if answer.outcome != "valid":
            return self._told(f"Not scored: {answer.message or 'the grader failed'}.")
        self._public_scores -= 1
        message = f"The best public score of this episode is {answer.best}."
        if answer.message is not None:
            message = f"The submission is valid, but {answer.message}."
        return self._told(message, valid=True, best=answer.best, improved=answer.improved)

    @contextlib.contextmanager
    def _submission(self) -> Iterator[Path]:
        """A copy of the submission, which the agent cannot change. Raises `NoSuchFile`."""
        with tempfile.TemporaryDirectory(dir=self._sandbox.spec.workdir) as folder:
            submission = Path(folder) / "submission.csv"
            self._sandbox.take(SUBMISSION, submission, self._sandbox.spec.limits.submission_bytes)
            yield submission

    def _data_files(self) -> Iterator[DataFile]:
        top = self.dataset.public
        for entry in entries(top):
            if entry.is_file():
                yield DataFile(path=f"data/{Path(entry.path).relative_to(top)}", bytes=entry.stat().st_size)
