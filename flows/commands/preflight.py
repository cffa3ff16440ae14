"""Checks of `mlebench run` before any work begins: without them each run would fail, hours later."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import click

from common.errors import UserError
from competitions import registry
from competitions.truth import require_scorable
from flows.credentials import require_agent_credentials
from flows.fleet.queues import Priority
from flows.preparing import Outlook, Preparing
from sandbox import backends
from sandbox.errors import UntrustedAgentRefused
from storage.dataset import Dataset
from storage.datasets.prepared import committed_key
from tasks.wiring.context import RunContext


@dataclass(frozen=True)
class Benchmark:
    """A benchmark that is about to begin: the run group, the competitions, and where data and agents are."""

    context: RunContext
    competition_ids: list[str]
    raw_dir: str | None = None
    keep_raw: bool = False
    skip_verification: bool = False
    pool: str | None = None
    """The work pool whose hosts run the agents; None: this machine runs them."""
    priority: Priority = "normal"
    detach: bool = False
    """Whether a host of the pool does everything else, too."""

    @property
    def preparing(self) -> Preparing:
        """What is prepared for the runs."""
        request = self.context.request
        options = self.raw_dir, self.keep_raw, self.skip_verification
        return Preparing(self.competition_ids, request.store, request.edition, *options)

    def parameters(self) -> dict[str, Any]:
        """The parameters of the flow full-benchmark."""
        return {
            "competition_ids": self.competition_ids,
            "request": self.context.request,
            "raw_dir": self.raw_dir,
            "keep_raw": self.keep_raw,
            "skip_verification": self.skip_verification,
            "pool": self.pool,
            "priority": self.priority,
        }


def require_ready(benchmark: Benchmark, *, dry_run: bool = False) -> None:
    """Raise the error of the first check that fails. A dry run leaves out the checks that write to the store.

    Raises:
        UserError: the benchmark cannot be run; the message names the remedy.
        click.UsageError: the options allow no run at all.
    """
    for check in _REQUEST_CHECKS if dry_run else (*_REQUEST_CHECKS, *_STATE_CHECKS):
        check(benchmark)


def refusals(benchmark: Benchmark) -> list[str]:
    """The reasons for which `run` would refuse a valid request, for a dry run. Writes nothing."""
    texts = []
    for check in _DRY_RUN_CHECKS:
        try:
            check(benchmark)
        except UserError as error:
            texts.append(str(error))
    return texts


def _supported_by_backend(benchmark: Benchmark) -> None:
    try:
        backends.require_supported(benchmark.context.agent, benchmark.context.request.isolation)
    except UntrustedAgentRefused as error:
        raise click.UsageError(str(error)) from None


def _hidden_answers(benchmark: Benchmark) -> None:
    benchmark.context.request.require_hidden_answers(benchmark.competition_ids)


def _obfuscated_descriptions(benchmark: Benchmark) -> None:
    if benchmark.context.request.obfuscated:
        for name in benchmark.competition_ids:
            _ = registry.get(name).obfuscated_description


def _scorable(benchmark: Benchmark) -> None:
    if benchmark.context.request.scorer:
        for name in benchmark.competition_ids:
            require_scorable(registry.get(name))


def _runnable_here(benchmark: Benchmark) -> None:
    if benchmark.pool is not None:
        return  # the hosts of the pool have the images and engines
    context = benchmark.context
    agent = context.agent.model_copy(update={"limits": context.stated_limits})
    settings = context.settings
    backends.require_runnable(agent, context.request.isolation, settings.allowed_hosts, settings.scratch)


def _sound_agent(benchmark: Benchmark) -> None:
    benchmark.context.agent.fingerprint()  # reads all of its files


def _agent_credentials(benchmark: Benchmark) -> None:
    if benchmark.pool is None:  # with a pool, its hosts need them
        require_agent_credentials(benchmark.context, benchmark.competition_ids)


def _usable_store(benchmark: Benchmark) -> None:
    benchmark.context.store.require_usable(on_wait=lambda text: click.echo(f"waiting {text}", err=True))


def _replaceable_runs(benchmark: Benchmark) -> None:
    """Refuse to overwrite runs of other conditions. Later, the task of each run checks the same for its run."""
    from storage.runs.folders import finished_folders
    from tasks.wiring.attempts import attempts_of, require_replaceable

    context = benchmark.context
    folders = finished_folders(context.store, context.request.run_group)
    finished = {(folder.competition_id, folder.seed) for folder in folders}
    for name in benchmark.competition_ids:
        if all(competition_id != name for competition_id, _ in finished):
            continue  # its attempts have keys, which take a while to compute
        for attempt in attempts_of(context, name):
            # Without a dataset the key of the run is not known; the dataset may be prepared elsewhere.
            if attempt.dataset_key is not None and (name, attempt.seed) in finished:
                require_replaceable(context, attempt)


def _divided_test_sets(benchmark: Benchmark) -> None:
    """Tell which competitions will have no feedback, or refuse them. Others than prepared ones are not known yet."""
    from tasks.wiring.feedback import REMEDY, DivisionFailed, division_of, not_divided

    request, store = benchmark.context.request, benchmark.context.store
    if request.feedback is None:
        return
    problems = {}
    for name in benchmark.competition_ids:
        key = committed_key(store, Dataset(request.edition, name))
        if key is not None:
            try:
                division = division_of(store, Dataset(request.edition, name, key), request.feedback)
            except DivisionFailed as error:  # its runs try it again
                click.echo(f"mlebench: {error}", err=True)
                continue
            if division.problem is not None:
                problems[name] = division.problem
    if problems and request.feedback_required:
        raise UserError(not_divided(problems) + REMEDY)
    if problems:
        click.echo(f"mlebench: some runs have no feedback, because {not_divided(problems)}", err=True)


def _downloads(benchmark: Benchmark) -> None:
    if not benchmark.detach:
        outlook = Outlook.of(benchmark.context.store, benchmark.preparing)
        outlook.require_some(benchmark.raw_dir, of_all=True)


def _server_of_the_pool(benchmark: Benchmark) -> None:
    if benchmark.pool is not None:
        from flows.fleet.queues import require_server

        require_server()


Check = Callable[[Benchmark], None]
_REQUEST_CHECKS: tuple[Check, ...] = (
    _supported_by_backend,
    _hidden_answers,
    _obfuscated_descriptions,
    _scorable,
    _runnable_here,
    _sound_agent,
    _agent_credentials,
)
_STATE_CHECKS: tuple[Check, ...] = (
    _usable_store,
    _replaceable_runs,
    _divided_test_sets,
    _downloads,
    _server_of_the_pool,
)
_DRY_RUN_CHECKS: tuple[Check, ...] = (_divided_test_sets, _server_of_the_pool)
"""Without `_usable_store`, which writes, and the checks whose answers the plan has."""
