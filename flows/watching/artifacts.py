"""The artifacts of a group's flow run in the Prefect UI: table of results, summary, links to report and store."""

from __future__ import annotations

from typing import Any

from common.markdown import Markdown, code, link
from grading.words import score_and_medal
from storage.runs.folders import grades_of, stored_runs
from storage.store import Store
from tasks.wiring.artifacts import show, show_table
from tasks.wiring.context import browser_link
from tasks.wiring.prefect_server import shown


def show_group(store: Store, run_group: str, report: str | None) -> None:
    """Make the artifacts `results` and `store`, and if there is a report `report` and `summary`. Never fails."""
    with shown(f"the table of results of {run_group}"):
        show_table("results", result_rows(store, run_group), f"Runs of {run_group}")
        folder = store.url("runs", run_group)
        # Only files have signed links, not folders.
        address = browser_link(store, f"{folder}/") if store.top.local else folder
        _link("store", address, f"Files of {run_group}", store.shown(folder))
        if report is not None:
            address = browser_link(store, report)
            _link("report", address, f"Report of {run_group}", store.shown(report))
            markdown = store.read(report.replace(".html", ".md")).decode()
            show("summary", Markdown(markdown), f"Summary of {run_group}")


def _link(key: str, address: str, text: str, path: str) -> None:
    """Show a link, or the path of a local file: browsers do not follow links from the UI to local files."""
    opens = address.startswith(("http://", "https://"))
    show(key, link(text, address) if opens else Markdown("{}: {}").format(text, code(path)), path)


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
                "medal": "none" if medal == "-" else medal,
                "message": (grade or record).message,
            }
        )
    return rows
