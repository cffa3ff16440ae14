"""A grade in words, for listings."""

from __future__ import annotations

from typing import Any


def judged(grade: dict[str, Any] | None) -> tuple[str, str]:
    """Score and medal of a grade record as words; the outcome stands where there is no score."""
    if grade is None:
        return "not graded", "-"
    if grade["outcome"] != "valid":
        return str(grade["outcome"]), "-"
    medal = next((name for name in ("gold", "silver", "bronze") if grade[f"{name}_medal"]), None)
    return f"{grade['score']:g}", medal or ("above median" if grade["above_median"] else "-")
