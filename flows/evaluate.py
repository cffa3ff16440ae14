"""The evaluate flow: agent-run -> grade for each competition and seed, then aggregate."""

from __future__ import annotations

from typing import Any

from prefect import flow
from prefect.futures import PrefectFuture

from common import progress
from flows.grading import Work, finish_group, outcomes_of, submit_grade
from flows.integrity import integrity
from flows.watching.naming import request_name
from flows.watching.outcome import Outcome, contained
from storage.runs.folders import finished_folders
from tasks.agent_run import agent_run, attempts_of, finished_run, work_folder
from tasks.grade import grade_request
from tasks.wiring import scratch
from tasks.wiring.requests import Attempt, RunRequest
from tasks.wiring.server import outlast_server
from tasks.wiring.stores import open_store


@flow(name="evaluate", flow_run_name=lambda: f"evaluate {request_name()}")
def evaluate(competition_ids: list[str], request: RunRequest) -> list[Outcome]:
    """Run an agent on prepared competitions with several seeds, grade its submissions, and report on the group.

    Runs and grades that are already in the store under the same content key are reused. Raises `PartlyFailed` at the
    end if a run could not be made or graded. An agent that crashes or times out is a result, not a failure.
    """
    outlast_server()
    place = open_store(request.store)
    scratch.collect_finished(place)
    work: dict[str, Work] = {}
    failed: dict[str, Outcome] = {}
    for name in competition_ids:
        attempts: list[Attempt] = []
        with contained(name, failed):
            attempts = attempts_of(request, name)
        for attempt in attempts:
            with contained(attempt.name, failed):
                made: list[PrefectFuture[Any]] = []
                if finished_run(attempt) is None:
                    progress.report(attempt.name, "queued")
                    made = [agent_run.submit(attempt)]
                else:
                    scratch.collect(work_folder(attempt, place))  # older versions left no note in it
                work[attempt.name] = submit_grade(grade_request(attempt), after=made)
    outcomes = outcomes_of(work) | failed
    with contained("integrity", outcomes):
        if request.examine and finished_folders(place, request.run_group):
            outcomes |= {each.what: each for each in integrity(request.run_group, place.root)}
    return finish_group(place, request.run_group, outcomes)
