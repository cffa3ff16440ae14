"""The flows as they are deployed: parameters for a form, with defaults from the worker's settings.

They add conveniences to the flows behind them: a split instead of a list of ids, the store of the settings instead of a
URL. The Prefect UI shows the descriptions below next to each field.
"""

from __future__ import annotations

from prefect import flow, runtime

from common.settings import get_settings
from competitions import registry
from competitions.editions import Choice
from flows.commands.preflight import Benchmark, require_ready
from flows.fleet.queues import Priority
from flows.fleet.registration import register
from flows.forms import (
    AgentName,
    Archives,
    Data,
    Execution,
    Seeds,
    Split,
    chosen_ids,
    group_part,
    run_request,
    words_of_form,
)
from flows.full_benchmark import full_benchmark
from flows.grading import finish_group, outcomes_of, submit_grade
from flows.prepare import prepare
from flows.watching.event_log import logging_events
from flows.watching.naming import agent_name, chosen_name, parameters
from flows.watching.outcome import Outcome
from grading.medals import Leaderboard
from storage.runs.folders import no_runs
from storage.store import check_run_group
from tasks.wiring.context import RunContext, open_store
from tasks.wiring.grades import grade_requests
from tasks.wiring.prefect_server import wait_for_server
from tasks.wiring.requests import RunRequest


def _group() -> str:
    """The run group. Without a name, one made from the flow run's id: a flow run that is resubmitted continues it."""
    given = parameters()
    return given["run_group"] or f"{agent_name(given['agent']).replace('@', '-')}-{str(runtime.flow_run.id)[:8]}"


def _benchmark_name() -> str:
    return f"{agent_name(parameters()['agent'])} on {chosen_name()}, group {_group()}"


@flow(name="benchmark", flow_run_name=_benchmark_name)
def benchmark(
    split: Split = "demo",
    agent: AgentName = "baseline",
    seeds: Seeds = 1,
    run_group: str | None = None,
    competition_ids: list[str] | None = None,
    execution: Execution = Execution(),  # noqa: B008  # frozen
    data: Data = Data(),  # noqa: B008  # frozen
) -> list[Outcome]:
    """Prepare competitions, run an agent on each with several seeds, grade its submissions, and write the report.

    Work that is already done under the same run group is skipped. A failure does not stop the rest: the flow run then
    ends as failed, and its artifacts have a table of what failed and why.

    Args:
        split: Which competitions: the small demo, low (the 22 of Lite), medium, high, all 75, dev, systemcard, or
            one of your own (`splits` in the worker's mlebench.toml).
        agent: Name of an agent, or the path of its folder on the worker. One that is not trusted, because it is not in
            MLEBENCH_AGENT_DIRS of the worker, needs the backend docker or rootless.
        seeds: Number of runs of each competition.
        run_group: Name of this set of runs; an existing one is continued. Default: agent and id of the flow run.
        competition_ids: Only these competitions, instead of a split.
        execution: Limits, isolation and integrity checks of the runs.
        data: Edition, store and downloads.
    """
    wait_for_server()
    with words_of_form(Execution, Data):
        group_part(agent)  # an unknown agent fails now, not after hours of preparing
        ids = chosen_ids(split, competition_ids)
        request = run_request(agent, _group(), seeds, data, execution, registry.recorded_split(split, ids))
        return run_benchmark(request, ids, data, execution.pool, execution.priority)


def run_benchmark(
    request: RunRequest, competition_ids: list[str], data: Data, pool: str | None = None, priority: Priority = "normal"
) -> list[Outcome]:
    """Check what `mlebench run` checks before anything is prepared, then run the benchmark.

    `pool` is the work pool of the agents, by default that of the settings. Raises `UserError` for what is refused.
    """
    pool = pool or get_settings().agent_pool
    if pool is not None:
        register(pool)
    benchmark = Benchmark(
        RunContext.of(request),
        competition_ids,
        data.raw_dir,
        skip_verification=data.skip_verification,
        pool=pool,
        priority=priority,
    )
    require_ready(benchmark)
    return full_benchmark.fn(**benchmark.parameters())


@flow(name="preparation", flow_run_name=lambda: f"prepare {chosen_name()} {parameters()['edition']}")
def preparation(
    split: Split = "demo",
    competition_ids: list[str] | None = None,
    edition: Choice = "v1",
    store: str | None = None,
    raw_dir: str | None = None,
    archives: Archives = Archives(),  # noqa: B008  # frozen
) -> list[Outcome]:
    """Download, split and verify competitions. Prepared ones are skipped, and a failure does not stop the rest.

    Args:
        split: Which competitions: the small demo, low (the 22 of Lite), medium, high, all 75, dev, systemcard, or
            one of your own (`splits` in the worker's mlebench.toml).
        competition_ids: Only these competitions, instead of a split.
        edition: v1 reproduces the published benchmark; v2 has its known issues fixed; or both.
        store: Root URL of the store. Default: MLEBENCH_STORE of the worker.
        raw_dir: Directory of downloaded archives on the worker. Default: download from Kaggle.
        archives: What happens to archives, and to datasets that were made by other code.
    """
    wait_for_server()
    opened = open_store(store)
    ids = chosen_ids(split, competition_ids)
    with words_of_form(Archives), logging_events():
        return prepare.fn(
            ids, opened.root, edition, raw_dir, archives.keep_raw, archives.skip_verification, archives.renew
        )


@flow(name="grading", flow_run_name="grade {run_group}")
def grading(run_group: str, leaderboard: Leaderboard = "stored", store: str | None = None) -> list[Outcome]:
    """Grade the finished runs of a group that the current graders have not graded yet, and write the report again.

    Args:
        run_group: Name of the set of runs, as `mlebench ls` lists it.
        leaderboard: Medal thresholds: as stored with the competitions, or of the most recently fetched leaderboard.
        store: Root URL of the store. Default: MLEBENCH_STORE of the worker.
    """
    wait_for_server()
    opened = open_store(store)
    requests = list(grade_requests(opened, check_run_group(run_group), leaderboard))
    if not requests:
        raise no_runs(opened, run_group, "finished runs")
    with logging_events():
        outcomes = outcomes_of({request.name: submit_grade(opened, request) for request in requests})
    return finish_group(opened, run_group, outcomes)
