"""The files of a run with feedback that have a public score, from the journal in the run's folder."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

from common.jsonlines import parse
from storage.runs.files import PUBLIC_SCORES
from storage.runs.records import RunRecord
from storage.store import Store


@dataclass(frozen=True)
class PublicScore:
    """A line of the journal: a file that an agent asked a score for."""

    number: int
    at_seconds: float
    sha256: str
    told: float | None
    """The best public score that the agent was told."""


def read_public_scores(store: Store, run: RunRecord, source: str) -> list[PublicScore]:
    """The files with a public score whose journal is below the URL `source`, by number; none without a journal."""
    try:
        content = store.read(f"{source}/{PUBLIC_SCORES}")
    except FileNotFoundError:
        return []
    return sorted(_scores(run, content), key=lambda each: each.number)


def _scores(run: RunRecord, content: bytes) -> Iterator[PublicScore]:
    for line in parse(content):
        number, told = line.get("number"), line.get("told")
        if isinstance(number, int) and (at := run.seconds_until(line.get("time"))) is not None:
            known = isinstance(told, int | float) and math.isfinite(told)
            yield PublicScore(number, at, str(line.get("sha256")), float(told) if known and told is not None else None)
