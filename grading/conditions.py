"""The conditions stated in a report: network access of the runs, medal thresholds, and the grader's version."""

from __future__ import annotations

from typing import TYPE_CHECKING

from common import machine

if TYPE_CHECKING:
    import pandas as pd


def report_conditions(runs: pd.DataFrame, grades: pd.DataFrame, run_group: str) -> dict[str, str]:
    """Labels and values for a run group, taken from its rows in tables/runs and tables/grades."""
    own = runs[runs["run_group"] == run_group] if len(runs) else runs
    facts = {}
    unsaid = "network" not in own or own["network"].isna().all()
    if len(own) and unsaid and set(own["backend"]) == {"process"}:
        facts["Network"] = "not restricted (process backend)"
    graded = grades[grades["run_group"] == run_group] if len(grades) else grades
    boards = sorted(graded["leaderboard"].dropna().unique()) if "leaderboard" in graded else []
    facts["Medal thresholds"] = ", ".join(boards) or "stored"
    return facts | {
        "Graded with": machine.software(),
        "Graded on": machine.hardware(),
        "Source of the grader": machine.commit(),
    }
