"""The services of a run (validation service and LLM gateway), configured from the settings."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import copy_context
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from common import progress
from common.settings import Settings
from competitions import registry
from grading.feedback.public_scores import Writing
from sandbox.backend import Backend, RunSpec, ScorerTexts
from sandbox.services.run_services import RunServices
from sandbox.validation.checker import Check, OnDemandChecker, Scored, Verdict
from storage.dataset import Dataset
from storage.store import Store
from tasks.wiring.feedback import GRADE_SECONDS, READ_SECONDS, answering
from tasks.wiring.requests import run_name

if TYPE_CHECKING:
    from competitions.competition import Competition
    from competitions.editions import Edition
    from grading.feedback.public_scores import PublicPart
    from grading.workers import GradingPool
    from sandbox.gateway.policy import GatewayPolicy

logger = logging.getLogger(__name__)

SCORED_BYTES = 1 << 30
"""The largest file that the scorer takes, or that gets a public score."""
PUBLIC_SCORE_CALLS, PUBLIC_SCORE_CALLS_PER_MINUTE = 2000, 20
"""Requests for public scores, also with files that are not valid, which the limit of a day does not count."""


def run_services(
    runner: Backend,
    spec: RunSpec,
    store: Store,
    dataset: Dataset,
    settings: Settings,
    public: PublicPart | None = None,
) -> RunServices:
    """The services of a run that is about to start or to continue. Open them before the run.

    The endpoints of the validation service are those for which `checks` has an entry: `/score` if the run has a scorer,
    and `/public-score` if there is a `public` part of the test set.
    """
    from sandbox.limits import ValidationLimits
    from sandbox.services.separate import ProcessLimits

    reporter = _VerdictReporter(run_name(spec.competition_id, spec.seed))
    limits = ValidationLimits(
        calls=settings.validation_calls,
        calls_per_minute=settings.validation_calls_per_minute,
        submission_bytes=min(spec.limits.submission_bytes, spec.limits.disk_bytes or spec.limits.submission_bytes),
    )
    checks = {}
    if limits.calls:
        checks["validation"] = Check(OnDemandChecker(lambda: _check(store, dataset, reporter)), limits)
    if spec.scorer is not None:
        file_bytes = min(limits.submission_bytes, SCORED_BYTES)
        own_limits = ValidationLimits(settings.scorer_calls, settings.scorer_calls_per_minute, file_bytes)
        checks["scorer"] = Check(OnDemandChecker(lambda: _score(spec, dataset.edition, file_bytes)), own_limits)
    if public is not None:
        calls = max(PUBLIC_SCORE_CALLS, 30 * public.calls_per_day)
        file_bytes = min(limits.submission_bytes, SCORED_BYTES)
        own_limits = ValidationLimits(calls, PUBLIC_SCORE_CALLS_PER_MINUTE, file_bytes)
        writing = Writing()  # ends with the services, before the files of the run are stored
        checks["public_score"] = Check(
            OnDemandChecker(lambda: answering(store, dataset, public, spec.workdir, writing), on_close=writing.end),
            own_limits,
        )
    return RunServices(
        spec.workdir,
        runner.service_addresses(spec),
        checks=checks,
        gateway=gateway_policy(settings) if settings.providers and _may_ask(runner) else None,
        process=ProcessLimits(),
    )


def _may_ask(runner: Backend) -> bool:
    """Whether the network policy allows a run to reach the gateway."""
    return runner.policy != "none"


def gateway_policy(settings: Settings) -> GatewayPolicy:
    """Providers, prices and budget of the gateway, from the settings."""
    from sandbox.gateway.policy import Budget, GatewayPolicy

    return GatewayPolicy(
        providers=settings.providers,
        prices=settings.prices,
        refuse_unpriced=settings.llm_refuse_unpriced,
        requests_per_minute=settings.llm_requests_per_minute,
        tokens_per_minute=settings.llm_tokens_per_minute,
        budget=Budget(settings.llm_requests, settings.llm_tokens, settings.llm_dollars),
        transcripts=settings.llm_transcripts,
        hosted_tools=settings.llm_hosted_tools,
    )


class _VerdictReporter:
    """Reports verdicts to the listeners of the context in which it was created: services run in other threads."""

    def __init__(self, row: str) -> None:
        self._row, self._last, self._context = row, "", copy_context()

    def report(self, verdict: Verdict) -> None:
        """Report a verdict, unless it is the same as the previous one."""
        text = f"the submission {'could not be checked' if verdict.outcome == 'failed' else f'is {verdict.outcome}'}"
        if verdict.message:
            text += f": {verdict.message}"
        if text != self._last:
            self._last = text
            self._context.copy().run(progress.report, self._row, "running", f"validated: {text}", story=True)


@contextmanager
def _check(store: Store, dataset: Dataset, reporter: _VerdictReporter) -> Iterator[Callable[[Path], Verdict]]:
    """A checker with a separate grader for this run, so that runs do not wait for each other's submissions."""
    from grading.workers import GradingLimits, GradingPool
    from storage.datasets.local_copy import local_copy
    from tasks.wiring.context import local_cache

    limits = GradingLimits(read_seconds=READ_SECONDS, grade_seconds=GRADE_SECONDS)
    competition, edition = registry.get(dataset.competition_id), dataset.edition
    cache = local_cache(patience=READ_SECONDS)  # the agent waits, and its own data may take the room
    with (
        local_copy(store, dataset, "private", cache) as prepared,
        GradingPool(competition, prepared, edition, limits=limits, validating=True) as grader,
    ):

        def check(submission: Path) -> Verdict:
            verdict = grader_verdict(grader, submission)
            reporter.report(verdict)
            return verdict

        yield check


def scorer_texts(competition: Competition, public: Path) -> ScorerTexts:
    """What the agent is told of the scorer. `public` is what it sees of the dataset."""
    from competitions.truth import truth_form

    form = truth_form(competition, public)
    metric = competition.facts.metric
    return ScorerTexts(f"{metric.name}, {metric.direction} is better", form.text, form.example_name, form.example)


@contextmanager
def _score(spec: RunSpec, edition: Edition, file_bytes: int) -> Iterator[Callable[[Path, Path], Scored]]:
    """A scorer of the agent's own files. It has no dataset, but for what the agent can read of it."""
    from competitions.truth import truth_form
    from grading.workers import GradingLimits, Scorer

    limits = GradingLimits(read_seconds=READ_SECONDS, grade_seconds=GRADE_SECONDS, size_bytes=file_bytes)
    competition = registry.get(spec.competition_id)
    with Scorer(competition, truth_form(competition, spec.data), edition, limits) as scorer:

        def score(predictions: Path, truth: Path) -> Scored:
            verdict = scorer.score(predictions, truth)
            if verdict.detail:
                logger.warning("files of %s could not be scored: %s\n%s", spec.run_id, verdict.message, verdict.detail)
            outcome: Literal["valid", "invalid", "failed"] = "invalid"
            if verdict.outcome in ("valid", "failed"):
                outcome = "valid" if verdict.outcome == "valid" else "failed"
            return Scored(outcome, verdict.message, verdict.score)

        yield score


def grader_verdict(grader: GradingPool, submission: Path) -> Verdict:
    """Whether the competition's grader accepts a submission; the score is discarded.

    If the grader fails, the reason is logged here and not part of the verdict, so that agents do not see it.
    """
    from grading.workers.endings import TOO_EXPENSIVE

    grade = grader.grade(submission)
    if grade.outcome == "valid":
        return Verdict("valid")
    # The limits of validation are tighter than those of grading, so that what exceeds them may still be valid.
    if grade.outcome == "invalid" and not str(grade.message).startswith(TOO_EXPENSIVE):
        if grade.detail:
            logger.warning("a submission is not valid: %s\n%s", grade.message, grade.detail)
        return Verdict("invalid", grade.message)
    logger.error("a submission could not be validated: %s\n%s", grade.message, grade.detail or "")
    return Verdict("failed")
