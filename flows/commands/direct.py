"""`mlebench run` without Prefect, which takes seconds to start: nothing is left to do, or a single short run."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from functools import partial
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from flows.commands.preflight import Benchmark
    from flows.watching.outcome import Outcome
    from storage.datasets.prepared import DataState
    from tasks.wiring.requests import Attempt

Result = TypeVar("Result")


def nothing_to_do(benchmark: Benchmark) -> bool:
    """Whether all datasets are prepared, and all runs are finished and graded, so that a flow would reuse everything.

    An examination of the runs is work, too. Also after an error, for example of a damaged record, there is work: the
    flow then reports the error.
    """
    from tasks.wiring.attempts import attempts_of, finished_run
    from tasks.wiring.grades import finished_grade, grade_request

    context = benchmark.context
    request, store = context.request, context.store
    if request.examine or request.overwrite:
        return False
    try:
        return all(
            state == "prepared"
            and all(
                finished_run(store, attempt) is not None and finished_grade(store, grade_request(attempt)) is not None
                for attempt in attempts_of(context, name)
            )
            for name, state in benchmark.preparing.states(store).items()
        )
    except Exception:
        return False


def is_single(benchmark: Benchmark) -> bool:
    """Whether one run on this machine is all that is to be made, so that nothing is done at the same time."""
    request = benchmark.context.request
    runs = len(benchmark.competition_ids) * len(request.seed_numbers)
    return runs == 1 and benchmark.pool is None and not request.examine


def run_directly(benchmark: Benchmark, go_on: str) -> int:
    """Do and print the same as the flow full-benchmark, one step after the other; returns the exit code.

    Ctrl-C ends the agent; `go_on` is the line that says how to go on then.
    """
    from flows.commands.session import tell
    from flows.commands.stopping import interruptible
    from flows.watching.board import board
    from tasks.wiring.backends import without_agents

    context = benchmark.context
    # The steps are in a thread, as in a flow: Ctrl-C ends the agent, which the thread waits for.
    with interruptible(go_on), board(f"{context.agent.full_name} as {context.request.run_group}"):
        thread = ThreadPoolExecutor(1)
        try:
            outcomes = thread.submit(copy_context().run, _outcomes, benchmark).result()
        except KeyboardInterrupt:
            with without_agents("stopped with its command"):
                thread.shutdown()
            raise
        thread.shutdown()
    return tell(outcomes)


def _outcomes(benchmark: Benchmark) -> list[Outcome]:
    from common import progress
    from flows.watching.outcome import Outcome, capture_errors
    from tasks.report import aggregate_group
    from tasks.wiring.attempts import attempts_of, note_plan
    from tasks.wiring.cancelling import forget_cancelling
    from tasks.wiring.storing import remove_leftovers

    context = benchmark.context
    request, store = context.request, context.store
    remove_leftovers(store)
    forget_cancelling(request)
    note_plan(store, request, benchmark.competition_ids)
    outcomes, runs = dict[str, Outcome](), dict[str, Outcome]()
    for name, state in benchmark.preparing.states(store).items():
        with capture_errors(name, outcomes):
            outcomes[name] = _prepare(benchmark, name, state)
            if outcomes[name].result == "done":
                progress.report(name, "done", outcomes[name].message)
        if outcomes[name].usable:
            with capture_errors(name, runs):
                for attempt in attempts_of(context, name):
                    with capture_errors(attempt.name, runs):
                        runs[attempt.name] = _run(attempt)
    of_report = f"tables and report of {request.run_group}"
    with capture_errors(of_report, runs):
        aggregate_group(store, request.run_group)
    return [*outcomes.values(), *(runs[name] for name in sorted(runs))]


def _prepare(benchmark: Benchmark, name: str, state: DataState | Exception) -> Outcome:
    from competitions import registry
    from flows.watching.outcome import Outcome
    from storage.datasets.prepared import left_out_of
    from storage.sources.availability import stating_availability
    from tasks.checksum import discard_unused, verify_checksums
    from tasks.download import download_archive
    from tasks.split import split_dataset
    from tasks.wiring.dask_workers import Workers

    if isinstance(state, Exception):
        with stating_availability(registry.get(name)):
            raise state
    store, edition = benchmark.context.store, benchmark.context.request.edition
    left_out = left_out_of(store, name, [edition])
    if state == "prepared":
        return Outcome(name, "reused", "; ".join(filter(None, ("prepared already", left_out))))
    verify, keep = not benchmark.skip_verification, benchmark.keep_raw
    download = _patiently(name, partial(download_archive, name, store.root, benchmark.raw_dir, verify, edition))
    with Workers() as workers:
        executor = workers.executor_for(store.size(store.raw(name)) or 0, on_wait=lambda _: None)
        key = _patiently(name, partial(split_dataset, name, store.root, edition, download, executor))
    if verify:
        _patiently(name, partial(verify_checksums, name, store.root, edition, key, keep))
    elif not keep:
        _patiently(name, partial(discard_unused, name, store.root))
    return Outcome(name, "done", left_out_of(store, name, [edition]))


def _run(attempt: Attempt) -> Outcome:
    from flows.watching.outcome import Outcome
    from tasks.agent_run import run_agent
    from tasks.grading import grade_run
    from tasks.wiring.context import open_store
    from tasks.wiring.grades import finished_grade, grade_request

    store, name = open_store(attempt.request.store), attempt.name
    _patiently(name, partial(run_agent, attempt))
    request = grade_request(attempt)
    if finished_grade(store, request) is not None:
        return Outcome(name, "reused", "already graded")
    record = _patiently(name, partial(grade_run, request))
    return Outcome(name, "failed", record.message or "") if record.outcome == "failed" else Outcome(name, "done")


def _patiently(row: str, step: Callable[[], Result]) -> Result:
    """Take a step, again and again after failures that pass, as the tasks of a flow do."""
    from common import progress
    from common.causes import retrying
    from common.settings import get_settings

    with progress.waits(row) as waiting:
        return retrying(step, seconds=get_settings().patience, on_wait=waiting)
