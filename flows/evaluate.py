"""The evaluate flow: agent-run -> grade for each competition and seed, then aggregate."""

from __future__ import annotations

from prefect import flow

from common.progress import tell
from common.settings import get_settings
from competitions.editions import Edition
from flows.integrity import integrity
from flows.naming import run_name
from flows.outcome import Outcome, finish, outcome_of
from flows.story import show_group
from sandbox.definitions import load_agent
from sandbox.isolation import PROCESSES, Isolation
from storage.runs.folders import finished_folders
from storage.store import check_run_group
from tasks.agent_run import agent_run, finished_run, run_key, run_row
from tasks.aggregate import aggregate
from tasks.grade import finished_grade, grade, grade_key, prepared_key_of
from tasks.wiring.stores import open_store


@flow(name="evaluate", flow_run_name=lambda: f"evaluate {run_name()}")
def evaluate(
    competition_ids: list[str],
    agent: str,
    run_group: str,
    store: str,
    seeds: int = 1,
    edition: Edition = "v1",
    time_limit_seconds: float | None = None,
    isolation: Isolation = PROCESSES,
    obfuscated: bool = False,
    examine: bool = False,
) -> list[Outcome]:
    """Run an agent on prepared competitions with seeds 0, 1, ..., grade what it leaves, and report on the group.

    Runs and grades that the store has already under the same content key are reused. Raises `PartlyFailed` at the end
    if a run could not be made or graded; an agent that crashes or runs out of time is a result, not a failure.
    With `obfuscated`, agents are not told which competition they work on; with `examine`, what they leave is looked
    through for plagiarism and broken rules, and a model's familiarity with the competitions is measured if one is set.
    """
    check_run_group(run_group)
    place = open_store(store)
    limits = load_agent(agent, get_settings().agent_dirs).limits.override(time_limit_seconds=time_limit_seconds)
    outcomes: dict[str, Outcome] = {}
    chains = {}
    for name in competition_ids:
        prepared_key = prepared_key_of(place, edition, name)
        for seed in range(seeds):
            row = run_row(run_group, name, seed)
            key = run_key(agent, limits, seed, edition, prepared_key, run_group, isolation, obfuscated)
            graded = grade_key(name, key, edition)
            chain = []
            if finished_run(place, run_group, name, seed, key) is None:
                tell(row, "queued")
                what = (name, seed, run_group, agent, place.root, edition, limits, key, isolation, obfuscated)
                chain.append(agent_run.submit(*what))
            elif finished_grade(place, run_group, name, seed, graded) is not None:
                outcomes[row] = Outcome(row, "reused", "run and graded already")
                tell(row, "reused", "run and graded already")
                continue
            chain.append(
                grade.submit(name, seed, run_group, place.root, edition, graded, wait_for=chain[:], return_state=False)
            )
            chains[row] = chain
    for row, chain in chains.items():
        outcomes[row] = outcome_of(row, chain)
        if outcomes[row].result == "failed":
            tell(row, "failed", outcomes[row].message)
        elif chain[-1].state.result() == "failed":
            outcomes[row] = Outcome(row, "failed", "grading failed by an error of ours; see the task run's log")
    if examine and finished_folders(place, run_group):
        outcomes |= {each.what: each for each in integrity(run_group, place.root)}
    report = aggregate(run_group, place.root)
    show_group(place, run_group, report)
    return finish("runs", [outcomes[row] for row in sorted(outcomes)])
