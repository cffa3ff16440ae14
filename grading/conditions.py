"""The conditions stated in a report: network access of the runs, medal thresholds, and the grader's version."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

from common import machine

if TYPE_CHECKING:
    import pandas as pd


_COMPARED = {
    "backend": "backend",
    "network": "network",
    "time_limit_seconds": "time limit",
    "cpus": "processors",
    "memory_bytes": "memory",
    "gpus": "GPUs",
    "hardware": "hardware",
    "obfuscated": "obfuscated descriptions",
}
"""Columns of tables/runs that decide what an agent could do."""
_PUBLISHED: tuple[tuple[str, tuple[float, ...], str], ...] = (
    ("time_limit_seconds", (24 * 3600.0,), "24 h"),
    ("cpus", (36,), "36 vCPU"),
    ("memory_bytes", (440e9, 440 * 2**30), "440 GB"),  # decimal, or binary as Docker counts
)
_PUBLISHED_SEEDS = 3


def deviations(runs: pd.DataFrame, seeds: int, edition: str, incomplete: str) -> list[str]:
    """Where a series deviates from the published conditions: 24 h, 36 vCPU, 440 GB, one A10, three seeds, edition v1.

    `seeds` is the least number of seeds that count in a split.

    What was not recorded is a deviation, too. Feedback on the test set is none: agents learn only whether a submission
    is valid.
    """
    found = []
    for column, published, words in _PUBLISHED:
        values = sorted(float(value) for value in runs[column].dropna().unique()) if column in runs else []
        if not values:
            found.append(f"{_COMPARED[column]}: not recorded (published: {words})")
        elif not all(any(math.isclose(value, each, rel_tol=0.03) for each in published) for value in values):
            shown = ", ".join(_shown(column, value) for value in values)
            found.append(f"{_COMPARED[column]}: {shown} (published: {words})")
    gpus = sorted(int(value) for value in runs["gpus"].dropna().unique()) if "gpus" in runs else []
    boards = " ".join(str(each) for each in runs["hardware"].dropna().unique()) if "hardware" in runs else ""
    if gpus != [1] or "A10" not in boards:
        number = ", ".join(map(str, gpus)) or "not recorded"
        found.append(f"GPUs: {number}{'' if 'A10' in boards else ', kind not recorded'} (published: one A10)")
    if seeds != _PUBLISHED_SEEDS:
        found.append(f"counted seeds: {seeds} (published: {_PUBLISHED_SEEDS})")
    if edition != "v1":
        found.append(f"edition: {edition} (published: v1)")
    if "obfuscated" in runs and runs["obfuscated"].eq(True).any():
        found.append("descriptions: obfuscated")
    if incomplete != "fail":
        found.append("padding: incomplete seeds are left out, not counted as failures")
    return found


def unlike(groups: Sequence[pd.DataFrame]) -> list[str]:
    """The conditions in which groups of runs differ, in words. Groups without runs, as imported ones, are unknown."""
    found = []
    for column, words in _COMPARED.items():
        seen = {
            frozenset(str(value) for value in runs[column].dropna().unique()) if column in runs else frozenset()
            for runs in groups
        }
        if len(seen) > 1:
            found.append(words)
    return found


def _shown(column: str, value: float) -> str:
    if column == "time_limit_seconds":
        return f"{value / 3600:g} h"
    return f"{value / 1e9:.0f} GB" if column == "memory_bytes" else f"{value:g}"


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
