"""Step 6: tables, summary and report of a run group."""

from __future__ import annotations

import platform
from importlib import metadata

from prefect import task

from competitions import registry
from grading.medals import Thresholds
from grading.report import CompetitionReport, summarise
from storage.store import Store
from storage.tables import read_table, write_table
from tasks.agent_run import RUN
from tasks.grade import GRADE

_OWN = ("key", "detail")  # of the records, not of the tables


@task(name="aggregate", task_run_name="aggregate {run_group}")
def aggregate(run_group: str, store: str) -> str:
    """Write the group's tables from its records, and its reports; returns the URL of the HTML report."""
    place = Store(store)
    for table, name in (("runs", RUN), ("grades", GRADE)):
        records = [place.read_json(url) for url in place.glob(f"runs/{run_group}/*/*/{name}")]
        rows = [{k: v for k, v in record.items() if k not in _OWN} for record in records if record]
        write_table(place, table, run_group, rows)  # type: ignore[arg-type]
    return write_report(place, [run_group])


def write_report(store: Store, run_groups: list[str]) -> str:
    """summary.json, report.html and report.md of some run groups, from the tables; returns the HTML's URL."""
    import pandas as pd

    from grading.page import render_markdown, render_page

    grades = read_table(store, "grades", run_groups)
    runs = read_table(store, "runs", run_groups)
    folder = store.url("reports", "+".join(run_groups))
    ids = sorted(set(grades["competition_id"])) if len(grades) else []
    facts = {name: registry.get(name).facts for name in ids}
    thresholds = {name: Thresholds.of(each) for name, each in facts.items()}
    page = render_page(
        grades,
        runs,
        thresholds=thresholds,
        conditions=dict.fromkeys(run_groups, _versions()),
        percentiles={
            name: each.leaderboard.percentiles for name, each in facts.items() if each.leaderboard.percentiles
        },
        titles={name: each.name for name, each in facts.items()},
        split_sizes={split: len(registry.list(split)) for split in ("low", "medium", "high", "dev", "demo")},
        title=f"MLE-bench: {' and '.join(run_groups)}",
    )
    store.write(f"{folder}/report.html", page.encode())
    markdown = render_markdown(grades, runs, thresholds=thresholds, title=f"MLE-bench: {' and '.join(run_groups)}")
    store.write(f"{folder}/report.md", markdown.encode())
    fields = list(CompetitionReport.model_fields)
    records = [{k: None if pd.isna(v) else v for k, v in row.items()} for row in grades.to_dict("records")]
    reports = [CompetitionReport.model_validate({name: record[name] for name in fields}) for record in records]
    store.write(f"{folder}/summary.json", summarise(reports).to_json().encode())
    return f"{folder}/report.html"


def _versions() -> dict[str, str]:
    """What the numbers were made with, beside what the tables say."""
    packages = ("mlebench-pipeline", "pandas", "scikit-learn", "prefect")
    return {"Python": platform.python_version(), **{name: metadata.version(name) for name in packages}}
