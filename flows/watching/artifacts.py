"""The artifacts of a group's flow run in the Prefect UI: table of results, summary, links to report and store."""

from __future__ import annotations

from typing import Any

from prefect.artifacts import create_link_artifact, create_markdown_artifact, create_table_artifact

from grading.words import score_and_medal
from storage.runs.folders import grades_of, stored_runs
from storage.store import Store
from tasks.wiring.server import shown
from tasks.wiring.stores import browser_link


def show_group(store: Store, run_group: str, report: str | None) -> None:
    """Make the artifacts `results` and `store`, and if there is a report `report` and `summary`. Never fails."""
    with shown(f"the table of results of {run_group}"):
        create_table_artifact(table=result_rows(store, run_group), key="results", description=f"Runs of {run_group}")
        folder = store.url("runs", run_group)
        # Signed links are to files; there is none to a folder.
        link = browser_link(store, f"{folder}/") if store.top.local else folder
        _link("store", link, f"Files of {run_group}", store.shown(folder))
        if report is not None:
            link = browser_link(store, report, "text/html; charset=utf-8")
            _link("report", link, f"Report of {run_group}", store.shown(report))
            markdown = store.read(report.replace(".html", ".md")).decode()
            create_markdown_artifact(markdown, key="summary")


def _link(key: str, link: str, text: str, place: str) -> None:
    """Make a link, or name the place if no browser opens it: none follows a link from the UI to a local file."""
    if link.startswith(("http://", "https://")):
        create_link_artifact(key=key, link=link, link_text=text, description=place)
    else:
        create_markdown_artifact(f"{text}: `{place}`", key=key, description=place)


def result_rows(store: Store, run_group: str) -> list[dict[str, Any]]:
    """One row per finished run of the group: status, score, medal, and the grader's message."""
    rows = []
    runs = stored_runs(store, run_group)
    for run, grade in zip(runs, grades_of(store, runs), strict=True):
        record = run.record
        score, medal = score_and_medal(grade.to_row() if grade else None)
        rows.append(
            {
                "competition": record.competition_id,
                "seed": record.seed,
                "agent": record.agent,
                "run": record.status,
                "score": score,
                # The UI shows tables as Markdown, in which a dash begins a list.
                "medal": "none" if medal == "-" else medal,
                "message": (grade or record).message,
            }
        )
    return rows
