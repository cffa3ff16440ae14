"""The flows as they are deployed: parameters that a form can ask for, defaults from the worker's settings.

They add nothing to the flows behind them but names: a split instead of a list of ids, the store of the settings
instead of a URL. The descriptions below are what the Prefect UI shows beside each field.
"""

from __future__ import annotations

from typing import Annotated, Literal

from prefect import flow, runtime
from pydantic import Field

from common.errors import UserError
from common.settings import get_settings
from competitions import registry
from competitions.editions import Edition
from flows.full_benchmark import full_benchmark
from flows.naming import agent_name, chosen_name, parameters
from flows.outcome import Outcome, finish, outcome_of
from flows.prepare import prepare
from flows.story import show_group
from grading.medals import Leaderboard
from sandbox.definitions import load_agent
from sandbox.isolation import BackendName, Isolation, Network
from storage.runs.folders import stored_runs
from storage.store import Store, check_run_group
from tasks.agent_run import run_row
from tasks.aggregate import aggregate
from tasks.grade import finished_grade, grade, grade_key
from tasks.wiring.figures import chosen_thresholds
from tasks.wiring.stores import open_store

Split = Literal["low", "medium", "high", "all", "dev", "demo", "systemcard"]
Seeds = Annotated[int, Field(ge=1)]
Seconds = Annotated[float, Field(ge=1)]


def chosen_ids(split: Split, competition_ids: list[str] | None) -> list[str]:
    """The named competitions, or all of the split if none is named. Raises `UnknownCompetition` for a wrong id."""
    return registry.select(competition_ids or registry.list(split))


def chosen_store(store: str | None) -> Store:
    """The store of that URL, or of the worker's settings."""
    return open_store(store)


def name_of(agent: str) -> str:
    """An agent's name as part of a run group's. Raises `AgentError` now rather than after hours of preparing."""
    return load_agent(agent, get_settings().agent_dirs).full_name.replace("@", "-")


def _group() -> str:
    """The run group; without a name one of this flow run, the same when it is resubmitted, so that it goes on."""
    given = parameters()
    return given["run_group"] or f"{agent_name(given['agent']).replace('@', '-')}-{str(runtime.flow_run.id)[:8]}"


def _benchmark_name() -> str:
    return f"{agent_name(parameters()['agent'])} on {chosen_name()}, group {_group()}"


@flow(name="benchmark", flow_run_name=_benchmark_name)
def benchmark(
    split: Split = "low",
    agent: str = "baseline",
    seeds: Seeds = 1,
    run_group: str | None = None,
    competition_ids: list[str] | None = None,
    edition: Edition = "v1",
    time_limit_seconds: Seconds | None = None,
    backend: BackendName = "process",
    network: Network = "gateway",
    store: str | None = None,
    raw_dir: str | None = None,
    skip_verification: bool = False,
    obfuscated: bool = False,
    integrity: bool = False,
) -> list[Outcome]:
    """Prepare competitions, run an agent on each with several seeds, grade what it leaves, and write the report.

    What is prepared, run or graded already under the same run group is reused. One failure stops nothing else; the
    flow run then ends as failed, with a table of what failed and why among its artifacts.

    Args:
        split: Which competitions: low (the 22 of Lite), medium, high, all 75, dev, the small demo, or systemcard.
        agent: Name of an agent, or the path of its folder on the worker.
        seeds: Runs of each competition.
        run_group: Name of this set of runs; one that exists is gone on with. Default: agent and flow run.
        competition_ids: Only these competitions, instead of a split.
        edition: v1 is the published benchmark bit for bit; v2 has its known issues fixed.
        time_limit_seconds: Wall-clock limit of a run. Default: the agent's own, 24 hours for most.
        backend: Where agents run: as processes (trusted agents only), or in containers.
        network: What agents in containers reach: nothing, the gateway to language models, allowed hosts, or all.
        store: Root URL of everything. Default: MLEBENCH_STORE of the worker.
        raw_dir: Directory of downloaded archives on the worker. Default: Kaggle.
        skip_verification: Do not compare with the published checksums.
        obfuscated: Do not tell agents which competition it is: another description, and no name.
        integrity: Look through what agents leave for plagiarism and broken rules.
    """
    place = chosen_store(store)
    name_of(agent)  # one that does not exist is to fail now rather than after hours of preparing
    group = check_run_group(_group())
    ids = chosen_ids(split, competition_ids)
    isolation = Isolation(backend, network)
    return full_benchmark.fn(
        ids,
        agent,
        group,
        place.root,
        seeds,
        edition,
        raw_dir,
        skip_verification=skip_verification,
        time_limit_seconds=time_limit_seconds,
        isolation=isolation,
        obfuscated=obfuscated,
        examine=integrity,
    )


@flow(name="preparation", flow_run_name=lambda: f"prepare {chosen_name()} {parameters()['edition']}")
def preparation(
    split: Split = "low",
    competition_ids: list[str] | None = None,
    edition: Edition = "v1",
    store: str | None = None,
    raw_dir: str | None = None,
    keep_raw: bool = False,
    skip_verification: bool = False,
) -> list[Outcome]:
    """Download, split and verify competitions. What is prepared already is reused; one failure stops nothing else.

    Args:
        split: Which competitions: low (the 22 of Lite), medium, high, all 75, dev, the small demo, or systemcard.
        competition_ids: Only these competitions, instead of a split.
        edition: v1 is the published benchmark bit for bit; v2 has its known issues fixed.
        store: Root URL of everything. Default: MLEBENCH_STORE of the worker.
        raw_dir: Directory of downloaded archives on the worker. Default: Kaggle.
        keep_raw: Keep the downloads after preparing.
        skip_verification: Do not compare with the published checksums.
    """
    place = chosen_store(store)
    return prepare.fn(chosen_ids(split, competition_ids), place.root, edition, raw_dir, keep_raw, skip_verification)


@flow(name="grading", flow_run_name="grade {run_group}")
def grading(run_group: str, leaderboard: Leaderboard = "stored", store: str | None = None) -> list[Outcome]:
    """Grade the finished runs of a group that are not graded yet by the graders as they are now, and report anew.

    Args:
        run_group: Name of the set of runs, as `mlebench ls` shows it.
        leaderboard: Medal thresholds: the competitions' own, or of leaderboards fetched with `mlebench leaderboard`.
        store: Root URL of everything. Default: MLEBENCH_STORE of the worker.
    """
    place = chosen_store(store)
    outcomes, chains = {}, {}
    for stored in stored_runs(place, check_run_group(run_group)):
        run = stored.record
        name, seed, edition = run.competition_id, run.seed, run.edition
        row = run_row(run_group, name, seed)
        try:
            board = chosen_thresholds(place, registry.get(name).facts, leaderboard).leaderboard
        except UserError as error:
            outcomes[row] = Outcome(row, "failed", str(error))
            continue
        key = grade_key(name, run.key, edition, board)
        if finished_grade(place, run_group, name, seed, key) is not None:
            outcomes[row] = Outcome(row, "reused", "graded already")
        else:
            chains[row] = [
                grade.submit(name, seed, run_group, place.root, edition, key, leaderboard, return_state=False)
            ]
    if not outcomes and not chains:
        raise UserError(f"no finished runs of group {run_group!r} in {place.root}")
    for row, chain in chains.items():
        outcomes[row] = outcome_of(row, chain)
    report = aggregate(run_group, place.root)
    show_group(place, run_group, report)
    return finish("runs", [outcomes[row] for row in sorted(outcomes)])
