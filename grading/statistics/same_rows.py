"""Grades of runs with feedback beside those of others, on the same test rows.

The score of a run with feedback leaves the public rows out, so the same submission has another score without feedback.
"""

from __future__ import annotations

import pandas as pd

from grading.medals import Thresholds, above_median, medal_for


def on_same_rows(a: pd.DataFrame, b: pd.DataFrame) -> tuple[pd.DataFrame, pd.DataFrame, list[str]]:
    """The latest grades of two groups, and the competitions in which they were scored on different rows.

    There, runs with feedback have their scores on all rows, and the medals of these. Grades without such a score, as in
    an imported report, are left out.
    """
    shares = [_shares(table) for table in (a, b)]
    unlike = sorted(name for name in shares[0].keys() & shares[1].keys() if shares[0][name] != shares[1][name])
    if not unlike:
        return a, b, []
    return _on_all_rows(a, unlike), _on_all_rows(b, unlike), unlike


def _shares(grades: pd.DataFrame) -> dict[str, frozenset[float]]:
    """The shares of public units by competition; 0 is a run without feedback."""
    shares = grades["feedback"].astype(float).fillna(0.0) if "feedback" in grades else pd.Series(0.0, grades.index)
    return {str(name): frozenset(part) for name, part in shares.groupby(grades["competition_id"])}


def _on_all_rows(grades: pd.DataFrame, competitions: list[str]) -> pd.DataFrame:
    if "feedback" not in grades:
        return grades
    rows = []
    for row in grades.to_dict("records"):
        if row["competition_id"] in competitions and pd.notna(row["feedback"]):
            score = row.get("score_with_public_rows")
            if pd.notna(score):
                limits = {name: row[f"{name}_threshold"] for name in ("gold", "silver", "bronze", "median")}
                thresholds = Thresholds(**limits, teams=0, lower_is_better=bool(row["is_lower_better"]))
                medal = medal_for(score, thresholds)
                row |= {f"{name}_medal": name == medal for name in ("gold", "silver", "bronze")}
                row |= {"any_medal": medal is not None, "above_median": above_median(score, thresholds)}
                row |= {"score": score, "valid_submission": True, "outcome": "valid"}
            elif row["valid_submission"]:
                continue
        rows.append(row)
    return pd.DataFrame(rows, columns=grades.columns)
