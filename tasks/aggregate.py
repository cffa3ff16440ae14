"""Step 6: tables, summary and report of a run group."""

from __future__ import annotations

from functools import partial
from itertools import chain

from prefect import task

from storage.runs.folders import records_of
from storage.runs.own_validations import read_own_validations
from storage.store import Store
from storage.tables import write_table
from tasks.report import write_aggregates, write_report
from tasks.wiring.retries import retried
from tasks.wiring.stores import open_store


@task(name="aggregate", task_run_name="aggregate {run_group}", **retried())
def aggregate(run_group: str, store: str) -> str | None:
    """Write the tables and reports of a group; see `aggregate_group`."""
    return aggregate_group(open_store(store), run_group)


def aggregate_group(place: Store, run_group: str) -> str | None:
    """Write the tables of a group from its records, and its reports; returns the URL of the HTML report.

    Returns None, and writes no report, if no run of the group is graded.
    """
    return write_report(place, [run_group]) if write_tables(place, run_group) else None


def write_tables(store: Store, run_group: str) -> bool:
    """Write tables/runs, grades, snapshots, usage, validations and own_validations from the records; the aggregates.

    Returns whether any run is graded.
    """
    found = list(records_of(store, run_group))
    write_table(store, "runs", run_group, (each.run.to_row() for each in found if each.run))
    write_table(store, "grades", run_group, (grade.to_row() for each in found for grade in each.grades))
    # Graded snapshots are stored with the grade, requests to language models with the run.
    snapshots = (snapshot for each in found if each.grades for snapshot in each.snapshots)
    write_table(store, "snapshots", run_group, (snapshot.to_row() for snapshot in snapshots))
    write_table(store, "usage", run_group, (request.to_row() for each in found for request in each.usage))
    checked = (validation.to_row() for each in found for validation in each.validations)
    write_table(store, "validations", run_group, checked)
    finished = [partial(read_own_validations, store, each.folder, each.run) for each in found if each.run]
    own = chain.from_iterable(store.concurrently(finished))
    write_table(store, "own_validations", run_group, (candidate.to_row() for candidate in own))
    write_aggregates(store, run_group)
    return any(each.grades for each in found)
