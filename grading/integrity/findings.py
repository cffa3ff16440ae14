"""Findings of possible rule violations, with the lines on which they are based."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Rule = Literal[
    "network",
    "external-model",
    "download",
    "outside",
    "answers",
    "leak",
    "hand-written",
    "no-model",
    "no-code",
    "sought-solutions",
    "unreadable",
    "not-examined",
]
Severity = Literal["violation", "notice"]
"""A violation flags the run for review. A notice alone does not."""

RULES: dict[Rule, str] = {
    "network": "accesses the network",
    "external-model": "asks a language model or another service for predictions",
    "download": "downloads models or data",
    "outside": "reads files outside its sandbox",
    "answers": "refers to files of answers",
    "leak": "uses data that a known issue leaks",
    "hand-written": "predictions written by hand",
    "no-model": "a submission without code that trains a model",
    "no-code": "a submission without any code",
    "sought-solutions": "searched for data or solutions that it must not use",
    "unreadable": "could not be read",
    "not-examined": "was not examined",
}


@dataclass(frozen=True)
class Finding:
    """One finding in a run's code or logs."""

    rule: Rule
    severity: Severity
    file: str
    line: int
    """Line number, from 1; 0 if the finding concerns the whole run."""
    quote: str
    why: str
    by: str = "static"
    """`static`, or the language model that found it."""
