"""Integrity checks of a run group as tasks. The checks are in other modules: commands need not import Prefect."""

from __future__ import annotations

from collections.abc import Sequence

from prefect import task

from common.errors import UserError
from common.settings import get_settings
from tasks.plagiarism import find_plagiarism
from tasks.violations import find_violations
from tasks.wiring.context import open_store
from tasks.wiring.prefect_tasks import retry_options


@task(name="violations", task_run_name="violations {run_group}", **retry_options())
def violations(run_group: str, store_url: str) -> int:
    """Write tables/violations of a group; returns the number of runs that a person should look at."""
    return find_violations(open_store(store_url), run_group).flagged


@task(name="plagiarism", task_run_name="plagiarism {run_group}", **retry_options())
def plagiarism(run_group: str, store_url: str, against: Sequence[str] = ()) -> int:
    """Write tables/plagiarism of a group; returns the number of pairs that a person should look at."""
    return sum(row["flagged"] for row in find_plagiarism(open_store(store_url), run_group, against))


@task(name="familiarity", task_run_name="familiarity {run_group}", **retry_options())
def familiarity(run_group: str, store_url: str) -> int:
    """Write the tables of `find_familiarity` for the settings' model; returns the number of competitions measured."""
    # These import pandas, which hosts do not need for attempts.
    from tasks.familiarity import find_familiarity
    from tasks.report import write_tables

    store, model = open_store(store_url), get_settings().familiarity_model
    if model is None:
        raise UserError("no model to measure: set MLEBENCH_FAMILIARITY_MODEL")
    # Familiarity is correlated with the scores of all runs that are graded by now.
    write_tables(store, run_group)
    rows, _ = find_familiarity(store, run_group, model)
    return sum(row["kind"] == "all" for row in rows)
