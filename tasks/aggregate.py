"""Step 6: tables, summary and report of a run group."""

from __future__ import annotations

from prefect import task

from storage.runs.paths import RUN
from storage.runs.usage import usage_rows
from storage.store import Store
from storage.tables import write_table
from tasks.report import write_aggregates, write_report
from tasks.wiring.snapshots import snapshot_rows

# A run graded in another edition than it was made for has a second record: grade-v2.json.
_RECORDS = (("runs", RUN), ("grades", "grade*.json"))
_OWN = ("key", "detail")  # of the records, not of the tables


@task(name="aggregate", task_run_name="aggregate {run_group}")
def aggregate(run_group: str, store: str) -> str | None:
    """Write the tables and reports of a group; see `aggregate_group`."""
    return aggregate_group(Store(store), run_group)


def aggregate_group(place: Store, run_group: str) -> str | None:
    """Write the tables of a group from its records, and its reports; returns the URL of the HTML report.

    None if no run of the group was graded: there is nothing to report on.
    """
    write_tables(place, run_group)
    return write_report(place, [run_group]) if place.glob(f"runs/{run_group}/*/*/grade*.json") else None


def write_tables(store: Store, run_group: str) -> None:
    """Write tables/runs, grades and usage from the group's records, and the aggregates."""
    for table, name in _RECORDS:
        records = [store.read_json(url) for url in store.glob(f"runs/{run_group}/*/*/{name}")]
        rows = [{k: v for k, v in record.items() if k not in _OWN} for record in records if record]
        write_table(store, table, run_group, rows)  # type: ignore[arg-type]
    write_table(store, "snapshots", run_group, snapshot_rows(store, run_group))
    write_table(store, "usage", run_group, usage_rows(store, run_group))
    write_aggregates(store, run_group)
