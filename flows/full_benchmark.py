"""The full benchmark: prepare, then evaluate. Also a command: `python -m flows.full_benchmark --help`."""

from __future__ import annotations

import sys

# `python -m` must answer --help at once: the flow below costs a second of imports.
if __name__ == "__main__":
    from flows.cli import main

    sys.exit(main(["run", *sys.argv[1:]]))

from prefect import flow

from competitions.editions import Edition
from flows.evaluate import evaluate
from flows.naming import run_name
from flows.outcome import Outcome, PartlyFailed
from flows.prepare import prepare
from sandbox.isolation import PROCESSES, Isolation


@flow(name="full-benchmark", flow_run_name=run_name)
def full_benchmark(
    competition_ids: list[str],
    agent: str,
    run_group: str,
    store: str,
    seeds: int = 1,
    edition: Edition = "v1",
    raw_dir: str | None = None,
    keep_raw: bool = False,
    skip_verification: bool = False,
    time_limit_seconds: float | None = None,
    isolation: Isolation = PROCESSES,
    obfuscated: bool = False,
    examine: bool = False,
) -> list[Outcome]:
    """Prepare what is not prepared, run the agent on all that could be, grade and report.

    Raises `PartlyFailed` at the end if anything failed; everything else is done all the same.
    """
    try:
        prepared = prepare(competition_ids, store, edition, raw_dir, keep_raw, skip_verification)
    except PartlyFailed as error:
        prepared = error.outcomes
    ready = [each.what for each in prepared if each.result != "failed"]
    try:
        how = (seeds, edition, time_limit_seconds, isolation, obfuscated, examine)
        runs = evaluate(ready, agent, run_group, store, *how) if ready else []
    except PartlyFailed as error:
        runs = error.outcomes
    outcomes = [*prepared, *runs]
    if any(each.result == "failed" for each in outcomes):
        raise PartlyFailed(outcomes)
    return outcomes
