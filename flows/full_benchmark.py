"""The full benchmark: prepare, then evaluate. Also a command: `python -m flows.full_benchmark --help`."""

from __future__ import annotations

import sys

# `python -m` must answer --help at once: the flow below costs a second of imports.
if __name__ == "__main__":
    from flows.cli import main

    sys.exit(main(["run", *sys.argv[1:]]))

from prefect import flow

from flows.evaluate import evaluate
from flows.prepare import prepare
from flows.watching.naming import request_name
from flows.watching.outcome import Outcome, PartlyFailed
from tasks.wiring.requests import RunRequest
from tasks.wiring.server import outlast_server


@flow(name="full-benchmark", flow_run_name=request_name)
def full_benchmark(
    competition_ids: list[str],
    request: RunRequest,
    raw_dir: str | None = None,
    keep_raw: bool = False,
    skip_verification: bool = False,
) -> list[Outcome]:
    """Prepare the competitions that are not prepared yet, run the agent on all that are, grade, and report.

    Raises `PartlyFailed` at the end if anything failed; everything else is finished nevertheless.
    """
    outlast_server()
    try:
        prepared = prepare(competition_ids, request.store, request.edition, raw_dir, keep_raw, skip_verification)
    except PartlyFailed as error:
        prepared = error.outcomes
    ready = [each.what for each in prepared if each.result != "failed"]
    try:
        runs = evaluate(ready, request) if ready else []
    except PartlyFailed as error:
        runs = error.outcomes
    outcomes = [*prepared, *runs]
    if any(each.result == "failed" for each in outcomes):
        raise PartlyFailed(outcomes)
    return outcomes
