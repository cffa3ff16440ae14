"""The services beside a run, as the settings want them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from common.settings import Settings, get_settings
from competitions import registry
from competitions.editions import Edition
from sandbox.backend import Backend, RunSpec
from sandbox.services.run_services import Reach, RunServices
from storage.dataset import Dataset
from storage.store import Store

if TYPE_CHECKING:
    from grading.workers import IsolatedGrader
    from sandbox.gateway.policy import GatewayPolicy

READ_SECONDS, GRADE_SECONDS = 120.0, 1200.0
"""Of one validation; a submission that takes longer is told so, or that it could not be checked."""


def run_services(runner: Backend, spec: RunSpec, store: Store, edition: Edition) -> RunServices:
    """The services of a run that is about to start or goes on; open them before the run."""
    from sandbox.validation.check import GraderCheck
    from sandbox.validation.service import ValidationLimits

    settings = get_settings()
    reach: Reach = runner.reach(spec) if hasattr(runner, "reach") else Reach()
    limits = ValidationLimits(
        calls=settings.validation_calls,
        calls_per_minute=settings.validation_calls_per_minute,
        submission_bytes=spec.limits.submission_bytes,
    )
    return RunServices(
        spec.workdir,
        reach,
        check=GraderCheck(lambda: _grader(spec.competition_id, store, edition)) if limits.calls else None,
        validation_limits=limits,
        gateway=gateway_policy(settings) if settings.providers and _may_ask(runner) else None,
    )


def _may_ask(runner: Backend) -> bool:
    """Whether the operator's choice of network lets a run reach the gateway."""
    return getattr(runner, "policy", None) != "none"


def gateway_policy(settings: Settings) -> GatewayPolicy:
    """What the settings let a run ask of language models."""
    from sandbox.gateway.policy import Budget, GatewayPolicy
    from sandbox.gateway.prices import list_prices

    return GatewayPolicy(
        providers=settings.providers,
        prices={**list_prices(), **settings.prices},
        budget=Budget(settings.llm_requests, settings.llm_tokens, settings.llm_dollars),
        transcripts=settings.llm_transcripts,
        hosted_tools=settings.llm_hosted_tools,
    )


@contextmanager
def _grader(competition_id: str, store: Store, edition: Edition) -> Iterator[IsolatedGrader]:
    """A grader of this run's own: no other run waits for what this one sends."""
    from grading.workers import GradingLimits, IsolatedGrader
    from storage.datasets.prepared import local_copy
    from tasks.wiring.stores import local_cache

    limits = GradingLimits(read_seconds=READ_SECONDS, grade_seconds=GRADE_SECONDS)
    with (
        local_copy(store, Dataset(edition, competition_id), "private", local_cache()) as prepared,
        IsolatedGrader(registry.get(competition_id), prepared, edition, limits=limits) as grader,
    ):
        yield grader
