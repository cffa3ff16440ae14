"""`mlebench run` where nothing is left to do: decided from the store alone, before Prefect starts a server."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from flows.commands.preflight import Benchmark


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


def show_reused(benchmark: Benchmark) -> int:
    """Do and print the same as a flow that reuses everything; returns the exit code.

    The tables and the report of the group are written, because an earlier command may have been ended before that.
    """
    from flows.commands.session import tell
    from flows.watching.outcome import Outcome
    from tasks.report import aggregate_group
    from tasks.wiring.attempts import note_plan
    from tasks.wiring.cancelling import forget_cancelling
    from tasks.wiring.requests import run_name
    from tasks.wiring.storing import remove_leftovers

    request, store, ids = benchmark.context.request, benchmark.context.store, benchmark.competition_ids
    remove_leftovers(store)
    forget_cancelling(request)
    note_plan(store, request, ids)
    aggregate_group(store, request.run_group)
    prepared = [Outcome(name, "reused", "prepared already") for name in ids]
    runs = sorted(run_name(name, seed) for name in ids for seed in request.seed_numbers)
    return tell([*prepared, *(Outcome(name, "reused", "already graded") for name in runs)])
