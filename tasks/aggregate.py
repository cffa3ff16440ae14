"""Step 6: tables, summary and report of a run group."""

from __future__ import annotations

from prefect import task

from storage.runs.folders import finished_folders, graded_folders, stored_runs
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
    write_tables(place, run_group)
    return write_report(place, [run_group]) if graded_folders(place, run_group) else None


def write_tables(store: Store, run_group: str) -> None:
    """Write tables/runs, grades, snapshots and usage from the group's records, and the aggregates."""
    graded, finished = graded_folders(store, run_group), finished_folders(store, run_group)
    runs = (run.record for run in stored_runs(store, run_group))
    grades = (grade for folder in graded for grade in folder.read_grades())
    # Graded snapshots are stored with the grade, requests to language models with the run.
    snapshots = (snapshot for folder in graded for snapshot in folder.read_snapshots())
    usage = (request for folder in finished for request in folder.read_usage())
    write_table(store, "runs", run_group, (record.to_row() for record in runs))
    write_table(store, "grades", run_group, (record.to_row() for record in grades))
    write_table(store, "snapshots", run_group, (record.to_row() for record in snapshots))
    write_table(store, "usage", run_group, (record.to_row() for record in usage))
    write_aggregates(store, run_group)
