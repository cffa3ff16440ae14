"""`mlebench run` where nothing is left to do: decided from the store alone, before Prefect starts a server."""

from __future__ import annotations

from collections.abc import Sequence

from tasks.wiring.requests import RunRequest


def nothing_to_do(request: RunRequest, competition_ids: Sequence[str], raw_dir: str | None, *, verified: bool) -> bool:
    """Whether all datasets are prepared, and all runs are finished and graded, so that a flow would reuse everything.

    Args:
        request: What to run. If it asks for an examination of the runs, that is to do.
        competition_ids: The competitions.
        raw_dir: Directory of downloaded archives.
        verified: Whether datasets count only if they were compared with the published checksums.

    An error, for example of a damaged record, is the flow's to report: there is something to do then.
    """
    from storage.dataset import Dataset
    from tasks.wiring.attempts import attempts_of, finished_run
    from tasks.wiring.context import already_prepared, open_store
    from tasks.wiring.grades import finished_grade, grade_request

    if request.examine or request.overwrite:
        return False
    store = open_store(request.store)
    try:
        return all(
            already_prepared(store, Dataset(request.edition, name), raw_dir, verified=verified)
            and all(
                finished_run(attempt) is not None and finished_grade(grade_request(attempt)) is not None
                for attempt in attempts_of(request, name)
            )
            for name in competition_ids
        )
    except Exception:
        return False


def show_reused(request: RunRequest, competition_ids: Sequence[str]) -> int:
    """Do what a flow does that reuses everything, and print the same; returns the exit code.

    The tables and the report of the group are written, because an earlier command may have been ended before that.
    """
    from flows.commands.session import tell
    from flows.watching.outcome import Outcome
    from tasks.report import aggregate_group
    from tasks.wiring.attempts import note_plan
    from tasks.wiring.cancelling import forget_cancelling
    from tasks.wiring.context import open_store
    from tasks.wiring.requests import run_name
    from tasks.wiring.storing import remove_leftovers

    store = open_store(request.store)
    remove_leftovers(store)
    forget_cancelling(request)
    note_plan(request, competition_ids)
    aggregate_group(store, request.run_group)
    prepared = [Outcome(name, "reused", "prepared already") for name in competition_ids]
    runs = sorted(run_name(name, seed) for name in competition_ids for seed in request.seed_numbers)
    outcomes = [*prepared, *(Outcome(name, "reused", "already graded") for name in runs)]
    return tell(outcomes)
