"""Step 6: tables, summary and report of a run group."""

from __future__ import annotations

from prefect import task

from tasks.report import aggregate_group
from tasks.wiring.context import open_store
from tasks.wiring.prefect_tasks import retry_options


@task(name="aggregate", task_run_name="aggregate {run_group}", **retry_options())
def aggregate(run_group: str, store_url: str) -> str | None:
    """Write the tables and reports of a group; see `aggregate_group`."""
    return aggregate_group(open_store(store_url), run_group)
