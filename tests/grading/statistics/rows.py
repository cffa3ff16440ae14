"""Rows of the table of grades for tests, and the rates of what was aggregated from them."""

from __future__ import annotations

from typing import Any

from grading.statistics.aggregate import Aggregate


def run_of(competition: str, seed: int, agent: str, group: str) -> dict[str, Any]:
    """What rows of all tables say of the run that they are about."""
    return {
        "run_group": group,
        "run_id": f"{group}-{agent}-{competition}-{seed}",
        "competition_id": competition,
        "seed": seed,
        "agent": agent,
        "edition": "v1",
    }


def grade(
    competition: str,
    seed: Any,
    medal: str | None = None,
    *,
    split: str = "low",
    agent: str = "baseline",
    group: str = "g",
    outcome: str = "valid",
    **more: Any,
) -> dict[str, Any]:
    """A row of the table of grades; `medal` also decides what else holds."""
    valid = outcome == "valid"
    return {
        **run_of(competition, seed, agent, group),
        "outcome": outcome,
        "any_medal": medal is not None,
        "gold_medal": medal == "gold",
        "silver_medal": medal == "silver",
        "bronze_medal": medal == "bronze",
        "above_median": medal is not None,
        "valid_submission": valid,
        "submission_exists": outcome != "missing",
        "complexity": split,
        "category": "Tabular",
        "created_at": "2026-01-01T00:00:00+00:00",
        **more,
    }


def rate(found: Aggregate, split: str, name: str = "any_medal", **series: Any) -> Any:
    rows = found.rates[(found.rates["split"] == split) & (found.rates["rate"] == name)]
    for column, value in series.items():
        rows = rows[rows[column] == value]
    assert len(rows) == 1
    return rows.iloc[0]
