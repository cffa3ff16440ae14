"""The artifacts of a group's flow run in the Prefect UI: table of results, summary, links to report and store."""

from __future__ import annotations

from typing import Any

from prefect.artifacts import create_link_artifact, create_markdown_artifact, create_table_artifact

from flows.judged import judged
from storage.runs.paths import RUN
from storage.store import Store
from tasks.grade import GRADE


def show_group(store: Store, run_group: str, report: str | None) -> None:
    """Make the artifacts `results`, `store`, and where there is a report `report` and `summary`."""
    create_table_artifact(table=result_rows(store, run_group), key="results", description=f"Runs of {run_group}")
    folder = store.url("runs", run_group)
    create_link_artifact(key="store", link=folder, link_text=f"Files of {run_group}", description=folder)
    if report is not None:
        create_link_artifact(key="report", link=report, link_text=f"Report of {run_group}", description=report)
        markdown = store.top.fs.cat_file(store.top.path(store.relative(report.replace(".html", ".md")))).decode()
        create_markdown_artifact(markdown, key="summary")


def result_rows(store: Store, run_group: str) -> list[dict[str, Any]]:
    """One row a finished run of the group: how it ended, its score and medal, and what the grader says."""
    rows = []
    for url in store.glob(f"runs/{run_group}/*/*/{RUN}"):
        run = store.read_json(url) or {}
        grade = store.read_json(url.removesuffix(RUN) + GRADE)
        score, medal = judged(grade)
        rows.append(
            {
                "competition": run["competition_id"],
                "seed": run["seed"],
                "agent": run["agent"],
                "run": run["status"],
                "score": score,
                "medal": medal,
                "message": (grade or run)["message"],
            }
        )
    return rows
