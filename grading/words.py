"""Describe grades and the endings of runs in words, for listings, the terminal, reports and the page."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, Literal

Kind = Literal["gold", "silver", "bronze", "above", "below", "invalid", "missing", "failed", "ungraded"]
"""The kinds of results from best to worst, the sort order of the columns in the page's matrix."""

MEDALS: tuple[Kind, ...] = ("gold", "silver", "bronze")
KIND_WORDS: dict[Kind, str] = {
    "gold": "gold medal",
    "silver": "silver medal",
    "bronze": "bronze medal",
    "above": "above median",
    "below": "not above median",
    "invalid": "invalid submission",
    "missing": "no submission",
    "failed": "grading failed",
    "ungraded": "not graded",
}
KIND_GLYPHS: dict[Kind, str] = {
    "gold": "G",
    "silver": "S",
    "bronze": "B",
    "above": "+",
    "below": "\N{MINUS SIGN}",
    "invalid": "\N{MULTIPLICATION SIGN}",
    "missing": "\N{EMPTY SET}",
    "failed": "!",
    "ungraded": "?",
}
ENDING_WORDS = {
    "timeout": "time limit reached",
    "memory": "out of memory",
    "disk": "disk limit reached",
    "processes": "too many processes",
    "crashed": "agent crashed",
    "lost": "lost by its machine",
    "failed": "run failed",
}
_SHORT: dict[Kind, str] = {"above": "above median", "below": "-"}


def ending(status: str | None) -> str | None:
    """How a run ended, given its status; None if it is unknown.

    >>> ending("timeout"), ending("completed"), ending(None)
    ('time limit reached', 'completed', None)
    """
    return None if status is None else ENDING_WORDS.get(status, status)


def kind_of(grade: Mapping[str, Any]) -> Kind:
    """The kind of a row of tables/grades; "ungraded" for a run without an outcome.

    >>> kind_of({"outcome": "valid", "silver_medal": True, "above_median": True}), kind_of({"outcome": None})
    ('silver', 'ungraded')
    """
    outcome = grade.get("outcome")
    if outcome is None:
        return "ungraded"
    if outcome != "valid":
        return outcome if outcome in ("invalid", "missing", "failed") else "ungraded"
    return next(
        (medal for medal in MEDALS if grade.get(f"{medal}_medal")), "above" if grade.get("above_median") else "below"
    )


def score_and_medal(grade: Mapping[str, Any] | None) -> tuple[str, str]:
    """Two cells of a listing: the score, or the outcome if there is no score, and the medal.

    >>> score_and_medal({"outcome": "valid", "score": 0.5, "above_median": True}), score_and_medal(None)
    (('0.5', 'above median'), ('not graded', '-'))

    After feedback, the score is that on the private part:

    >>> score_and_medal({"outcome": "valid", "score": 0.5, "gold_medal": True, "feedback": 0.3})
    ('0.5 (private)', 'gold')
    """
    if grade is None:
        return "not graded", "-"
    if grade["outcome"] != "valid":
        return str(grade["outcome"]), "-"
    kind = kind_of(grade)
    return _score(grade), _SHORT.get(kind, kind)


def _score(grade: Mapping[str, Any]) -> str:
    """The score, with a mark if it is that on the private part. Tables have NaN where there is no feedback."""
    feedback = grade.get("feedback")
    private = feedback is not None and not math.isnan(feedback)
    return f"{number(grade['score'])}{' (private)' if private else ''}"


def number(value: float | None) -> str:
    """A score or threshold with up to five decimals, as reports round them. NaN stands for a score that is none.

    >>> number(0.5), number(1234567.125), number(6.1e-05), number(None)
    ('0.5', '1234567.125', '0.00006', 'nan')
    """
    if value is None or not math.isfinite(value):
        return f"{math.nan if value is None else value:g}"
    text = f"{value:.5f}".rstrip("0").removesuffix(".")
    return "0" if text == "-0" else text


def in_words(grade: Mapping[str, Any] | None) -> str:
    """One phrase: the score with its medal, or the outcome with its cause.

    >>> in_words({"outcome": "valid", "score": 0.5, "gold_medal": True})
    '0.5 gold'
    >>> in_words({"outcome": "missing", "message": "the agent left no submission"})
    'missing (the agent left no submission)'
    """
    if grade is None:
        return "not graded"
    if grade["outcome"] != "valid":
        return f"{grade['outcome']} ({grade['message']})"
    kind = kind_of(grade)
    return f"{_score(grade)} {kind if kind in MEDALS else 'no medal'}"
