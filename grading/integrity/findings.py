"""What may break a rule: one finding, with the line it rests on."""

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
]
Severity = Literal["violation", "notice"]
"""A violation makes the run one to look at; a notice is worth knowing beside others."""

RULES: dict[Rule, str] = {
    "network": "reaches for the network",
    "external-model": "asks a language model or another service for predictions",
    "download": "downloads models or data",
    "outside": "reads outside its world",
    "answers": "names the answers",
    "leak": "uses what a known issue leaks",
    "hand-written": "predictions written by hand",
    "no-model": "a submission without any code of a model",
    "no-code": "a submission and no code",
    "sought-solutions": "looked for data or solutions it should not have",
}


@dataclass(frozen=True)
class Finding:
    """One finding in a run's code or logs."""

    rule: Rule
    severity: Severity
    file: str
    line: int
    """From 1; 0 where it is about the whole run."""
    quote: str
    why: str
    by: str = "static"
    """`static`, or the language model that found it."""
