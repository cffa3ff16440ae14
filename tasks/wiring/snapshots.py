"""Earlier submissions of a run, graded: how the score grew with time."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

from storage.store import Store

if TYPE_CHECKING:
    from grading.workers import IsolatedGrader

SNAPSHOTS = "snapshots.json"
_GRADE = (
    "score",
    "valid_submission",
    "any_medal",
    "gold_medal",
    "silver_medal",
    "bronze_medal",
    "above_median",
)


def store_snapshots(store: Store, run: dict[str, Any], url: str, grader: IsolatedGrader) -> None:
    """Grade the run's snapshots, if any were kept, and write the rows beside its record."""
    rows = grade_snapshots(store, run, url, grader)
    if rows:
        store.write_json(f"{url}/{SNAPSHOTS}", rows)


def snapshot_rows(store: Store, run_group: str) -> list[dict[str, Any]]:
    """Rows of `tables/snapshots` of a run group."""
    found = [store.read_json(url) for url in store.glob(f"runs/{run_group}/*/*/{SNAPSHOTS}")]
    return [row for rows in found for row in rows or []]


def grade_snapshots(store: Store, run: dict[str, Any], url: str, grader: IsolatedGrader) -> list[dict[str, Any]]:
    """Rows of `tables/snapshots`: one a version of the submission, by time since the run's start."""
    who = {name: run[name] for name in ("run_group", "run_id", "competition_id", "seed", "agent")}
    rows = []
    for snapshot in store.glob(store.relative(url) + "/snapshots/*.csv"):
        with tempfile.TemporaryDirectory(prefix="mlebench-grade-") as folder:
            local = Path(folder) / "submission.csv"
            store.top.fs.get_file(store.top.path(store.relative(snapshot)), str(local))
            result = grader.grade(local, snapshot)
        report = result.report
        seconds = float(snapshot.rsplit("/", 1)[1].removesuffix(".csv"))
        rows.append({**who, "at_seconds": seconds, **{name: getattr(report, name) for name in _GRADE}})
    return sorted(rows, key=lambda row: row["at_seconds"])
