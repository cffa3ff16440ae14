"""The services beside a run, validation and the LLM gateway, configured from the settings."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from common.settings import Settings
from competitions import registry
from competitions.editions import Edition
from sandbox.backend import Backend, RunSpec
from sandbox.services.run_services import Reach, RunServices
from storage.store import Store

if TYPE_CHECKING:
    from grading.workers import IsolatedGrader
    from sandbox.gateway.policy import GatewayPolicy

READ_SECONDS, GRADE_SECONDS = 120.0, 1200.0
"""Timeouts of a validation: of reading the submission, and of grading it."""


def run_services(runner: Backend, spec: RunSpec, store: Store, edition: Edition, settings: Settings) -> RunServices:
    """The services of a run that is about to start or continues; open them before the run."""
    from sandbox.validation.check import GraderCheck
    from sandbox.validation.service import ValidationLimits

    reach: Reach = runner.reach(spec) if hasattr(runner, "reach") else Reach()
    limits = ValidationLimits(
        calls=settings.validation_calls,
        calls_per_minute=settings.validation_calls_per_minute,
        submission_bytes=spec.limits.submission_bytes,
    )
    return RunServices(
        spec.workdir,
        reach,
        check=GraderCheck(lambda: _grader(spec.competition_id, store, edition, settings.scratch))
        if limits.calls
        else None,
        validation_limits=limits,
        gateway=gateway_policy(settings) if settings.providers and _may_ask(runner) else None,
    )


def _may_ask(runner: Backend) -> bool:
    """Whether the network policy allows a run to reach the gateway."""
    return getattr(runner, "policy", None) != "none"


def gateway_policy(settings: Settings) -> GatewayPolicy:
    """Providers, prices and budget of the gateway, from the settings."""
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
def _grader(competition_id: str, store: Store, edition: Edition, scratch: Path) -> Iterator[IsolatedGrader]:
    """A grader for this run alone, so that no run waits for the validations of another."""
    from grading.workers import GradingLimits, IsolatedGrader
    from storage.datasets.prepared import held_part

    limits = GradingLimits(read_seconds=READ_SECONDS, grade_seconds=GRADE_SECONDS)
    with (
        held_part(store, competition_id, edition, "private", scratch) as prepared,
        IsolatedGrader(registry.get(competition_id), prepared, edition, limits=limits) as grader,
    ):
        yield grader
