"""A prepared competition in which agents are trained: its files, its graders, and the rewards that they give."""

from __future__ import annotations

import contextlib
import json
import math
import threading
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Self

from common.errors import UserError
from competitions import registry
from competitions.competition import Competition
from competitions.truth import require_scorable, truth_form
from competitions.variant import Variant
from competitions.variants.derive import SUMMARY
from grading.feedback.public_scores import PublicPart, PublicScores
from grading.grade import Grade
from grading.medals import Thresholds, above_median, dense_reward, human_percentile, medal_for
from grading.workers import GradingLimits, GradingPool, Scorer
from grading.workers.endings import Verdict
from grading.workers.parts import Part
from sandbox.backend import Allocation, RunSpec
from sandbox.definitions import Agent
from sandbox.limits import Limits
from storage.cache import Cache
from storage.dataset import Dataset
from storage.datasets.current import require
from storage.datasets.local_copy import local_copy
from storage.store import Store

EVALUATION = "lite"
"""The split on which agents are evaluated, and therefore not trained."""
PUBLIC_SECONDS = 60.0
"""Time for the standard errors of a public score, which nobody waits long for in an episode."""
GRADING = GradingLimits(read_seconds=60.0, grade_seconds=300.0)


@dataclass(frozen=True)
class Judgement:
    """What a submission is worth."""

    reward: float
    """Share of the teams of the human leaderboard that the score beats, 0 to 1; 0 for a submission without a score."""
    info: dict[str, Any]
    """valid, message, failure, score, part (private or whole), medal, human_percentile, improvement over the sample.

    `failure` is why the reward says nothing of the agent: it could not be computed."""


def is_evaluated(competition: Competition) -> bool:
    """Whether agents are evaluated on a competition, or on that which it is a variant of."""
    whole = competition.parent if isinstance(competition, Variant) else competition
    return whole.id in registry.list(EVALUATION)


def has_whole_test_set(competition: Competition, public: Path | None = None) -> bool:
    """Whether scores are on more than half of the benchmark's test set, not those of a small variant.

    Args:
        competition: the competition, or a variant.
        public: the public files, which say how many test units a variant has; None if they are not known yet.
    """
    if not isinstance(competition, Variant):
        return True
    if public is None:
        return False
    summary = json.loads((public / SUMMARY).read_text("utf-8"))
    return 2 * int(summary["test_units"]) > int(summary.get("all_test_units", 0))  # older ones do not say it


def require_allowed(competition: Competition, *, whole: bool, allow_eval: bool, allow_test_scores: bool) -> None:
    """Raise `UserError` if agents must not be trained on the prepared dataset of a competition.

    `whole` is whether it has the whole test set, see `has_whole_test_set`.
    """
    if is_evaluated(competition) and not allow_eval:
        raise UserError(
            f"{competition.id} is one of the 22 Lite competitions, on which agents are evaluated: train on others, or "
            "allow it with --allow-eval"
        )
    if whole and not allow_test_scores:
        share, smaller = "whole test set", f"a small variant (mlebench prepare -c {competition.id} --rows 200)"
        if isinstance(competition, Variant):
            share = "test set, more than half of it"
            smaller = f"fewer rows (mlebench prepare -c {competition.parent.id} --rows N --renew)"
        raise UserError(
            f"rewards of {competition.id} would be scores on the benchmark's {share}: train on {smaller}, or accept "
            "that with --allow-test-scores; scores of agents that were trained with it must not be reported"
        )


class TrainingDataset:
    """A dataset with its graders, which several episodes use. Close it, or use it in a `with` statement."""

    def __init__(self, store: Store, dataset: Dataset, cache: Cache) -> None:
        """Open the current dataset. Raises `UserError` if it is not prepared."""
        self.dataset = require(store, dataset)
        self.competition = registry.get(dataset.competition_id)
        facts = self.competition.facts
        self._thresholds, self._percentiles = Thresholds.of(facts), facts.leaderboard.percentiles
        self._resources = contextlib.ExitStack()
        try:
            self.public = self._open(local_copy(store, self.dataset, "public", cache)) / "public"
            self.whole = has_whole_test_set(self.competition, self.public)
            self._prepared = self._open(local_copy(store, self.dataset, "private", cache))
            self._grader = self._open(self._pool())
            self._checker = self._open(self._pool(validating=True))
        except BaseException:
            self._resources.close()
            raise
        self._mutex = threading.Lock()
        self._scorer: Scorer | None = None
        self._sample: tuple[str | None, Part | None, float | None] | None = None

    def _open(self, resource: Any) -> Any:
        return self._resources.enter_context(resource)

    def _pool(self, *, validating: bool = False) -> GradingPool:
        edition = self.dataset.edition
        return GradingPool(self.competition, self._prepared, edition, limits=GRADING, validating=validating)

    @property
    def id(self) -> str:
        """The name of the dataset in the actions of clients and in tables."""
        return self.competition.id

    @property
    def kind(self) -> str:
        """What is the same for all sandboxes of the dataset."""
        return f"{self.id} {self.dataset.key}"

    @property
    def sample(self) -> str | None:
        """The path of the sample submission below the public files, if it is public."""
        path = self.competition.facts.files.sample_submission
        return path.removeprefix("public/") if path.startswith("public/") else None

    def description(self) -> str:
        """The description of the competition."""
        return self.competition.describe(self.dataset.edition)

    def spec(self, agent: Agent, limits: Limits, allocation: Allocation) -> Callable[[Path], RunSpec]:
        """The run of a sandbox, given its work directory."""

        def make(workdir: Path) -> RunSpec:
            return RunSpec(
                run_id=f"episode-{workdir.name}",
                competition_id=self.competition.id,
                seed=0,  # an episode has its own
                agent=agent,
                data=self.public,
                workdir=workdir,
                limits=limits,
                description=self.description(),
                sample_submission=self.sample,
                allocation=allocation,
                labels={"kind": self.kind, "episode": workdir.name},
            )

        return make

    def check(self, submission: Path) -> Grade:
        """Whether a submission is valid; the grade has no score."""
        return self._checker.grade(submission)

    def score(self, predictions: Path, truth: Path) -> Verdict:
        """The score of predictions on an agent's own truth. Raises `UserError` if this competition has no scorer."""
        with self._mutex:
            if self._scorer is None:
                require_scorable(self.competition)
                form = truth_form(self.competition, self.public)
                self._scorer = self._open(Scorer(self.competition, form, self.dataset.edition, GRADING))
        return self._scorer.score(predictions, truth)

    def public_scores(self, folder: Path, calls: int) -> PublicScores:
        """What answers up to `calls` public scores of an episode, with its records in `folder`.

        Raises `UserError` if the test set cannot be divided. Why is not said, because it may depend on the answers.
        """
        column, *_ = self._sample_scores()
        if column is None:
            raise UserError("the test set of this competition cannot be divided into a public and a private part")
        part = PublicPart(id=column, calls_per_day=calls)
        return PublicScores(self._checker, folder, part, seconds=PUBLIC_SECONDS)

    def judge(self, submission: Path) -> Judgement:
        """The reward of a submission, by its score on the private part of the test set.

        It is the score on the whole test set where that cannot be divided; `part` in the info says so. Where it can, a
        submission without a private score is invalid, as in a run with feedback.
        """
        column, sample_part, sample_score = self._sample_scores()
        if column is None or sample_part is None:
            grade = self._grader.grade(submission)
            return self._judgement(grade, grade.report.score, sample_score, "whole")
        grade, parts = self._grader.parts(submission, id=column, seconds=0)
        private = parts.private.score if parts is not None and parts.private is not None else None
        if grade.outcome == "valid" and private is None:
            reason = parts.message if parts is not None else f"the score on all rows is {grade.report.score}"
            message = f"there is no score on the private part of the test set: {reason}"
            grade = replace(grade, outcome="invalid", message=message)
        return self._judgement(grade, private, sample_part.score, "private")

    def _judgement(self, grade: Grade, score: float | None, reference: float | None, part: str) -> Judgement:
        sign = -1.0 if self._thresholds.lower_is_better else 1.0
        percentile = human_percentile(score, self._percentiles)
        info = {
            "valid": grade.outcome == "valid",
            "message": grade.message,
            "failure": grade.message if grade.outcome == "failed" else None,
            "score": score,
            "part": part if score is not None else None,
            "medal": medal_for(score, self._thresholds),
            "above_median": above_median(score, self._thresholds),
            "human_percentile": None if math.isnan(percentile) else percentile,
            "improvement": None if score is None or reference is None else sign * (score - reference),
        }
        return Judgement(dense_reward(score, self._thresholds, self._percentiles), info)

    def _sample_scores(self) -> tuple[str | None, Part | None, float | None]:
        """The column of ids, by which test sets are divided, and the scores of the sample submission."""
        with self._mutex:
            if self._sample is None:
                self._sample = None, None, None
                path = self.public / self.sample if self.sample else None
                if path is not None and path.is_file():
                    grade, parts = self._grader.parts(path, seconds=0)
                    part = parts.private if parts is not None else None
                    self._sample = parts.id if parts is not None and part else None, part, grade.report.score
            return self._sample

    def warm(self) -> None:
        """Start the grader, which takes a second or two."""
        self._sample_scores()

    def rest(self) -> None:
        """End the graders until they are used again."""
        with self._mutex:
            self._sample = None
            graders = [self._grader, self._checker, *([self._scorer] if self._scorer is not None else [])]
        for grader in graders:
            grader.close()

    def close(self) -> None:
        """End the graders."""
        self._resources.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_error: object) -> None:
        self.close()
