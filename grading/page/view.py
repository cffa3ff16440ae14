"""The data of the page: series, competitions, and one result per run."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from common.cleaning import clean
from grading.medals import Thresholds
from grading.statistics.series import SERIES
from grading.words import Kind, ending

SHAPES = 12  # number of distinct marks and colours, which further series reuse
_MAX_CAUSE_CHARACTERS = 240
_MANY_RESULTS = 1000  # from which on marks have no tooltips
MANY_SERIES = 6  # above which the page has no charts of single runs


@dataclass(frozen=True)
class Series:
    """The runs of one run group, agent and edition, which are compared with other series."""

    index: int
    run_group: str
    agent: str
    edition: str
    label: str  # the shortest unambiguous name
    seeds: tuple[Any, ...]
    feedback: bool = False
    """Whether the agent was told scores on test rows in any run. Then the label says so, in every table and chart."""

    @property
    def shape(self) -> int:
        """Index of its mark and colour."""
        return self.index % SHAPES


@dataclass(frozen=True)
class Result:
    """One run and its grade."""

    competition_id: str
    series: Series
    seed: Any
    kind: Kind
    score: float | None  # may be NaN; None if there is no score
    percentile: float  # share of the leaderboard's teams beaten, 0-100; NaN where unknown
    message: str | None
    status: str | None  # how the run ended; None if the run is not in the table of runs
    duration: float | None  # seconds
    time_limit: float | None  # seconds
    run_id: str = ""

    @property
    def scored(self) -> bool:
        """Whether the result has a score that can be placed on an axis."""
        return self.score is not None and not math.isnan(self.score)

    @property
    def ended(self) -> str | None:
        """How the run ended, in words; None if unknown."""
        return ending(self.status)

    @property
    def cause(self) -> str | None:
        """The message in short: the last line of a traceback, or the beginning of other messages."""
        message = self.message
        if message is None or (len(message) <= _MAX_CAUSE_CHARACTERS and message.count("\n") < 3):
            return message
        lines = [line.strip() for line in message.splitlines() if line.strip()]
        line = lines[-1] if lines[0].startswith("Traceback") else " ".join(lines)
        return line if len(line) <= _MAX_CAUSE_CHARACTERS else line[:_MAX_CAUSE_CHARACTERS] + "…"

    @property
    def late(self) -> bool:
        """Whether the run reached its time limit, and its submission was valid."""
        return self.status == "timeout" and self.kind not in ("invalid", "missing", "failed", "ungraded")

    @property
    def failure(self) -> bool:
        """Whether the run did not complete or has no score."""
        return self.kind in ("invalid", "missing", "failed", "ungraded") or self.status not in (None, "completed")


@dataclass(frozen=True)
class CompetitionView:
    """One competition with its thresholds and its results by series index and seed."""

    id: str
    title: str
    complexity: str
    category: str
    thresholds: Thresholds | None
    percentiles: Sequence[float] | None
    results: Mapping[tuple[int, Any], Result]

    @property
    def human(self) -> bool:
        """False if its leaderboard is known not to consist of human teams."""
        return self.thresholds is None or self.thresholds.human


@dataclass(frozen=True)
class View:
    """The data of the page in display order."""

    series: tuple[Series, ...]
    competitions: tuple[CompetitionView, ...]

    @property
    def lean(self) -> bool:
        """Whether marks have no tooltips, because they would make most of a page that has to load quickly."""
        return len(self.results) > _MANY_RESULTS

    @property
    def crowded(self) -> bool:
        """Whether there are too many series for charts in which every run has a line or a lane."""
        return len(self.series) > MANY_SERIES

    @cached_property
    def results(self) -> list[Result]:
        """All results by competition, series and seed."""
        return [
            r
            for c in self.competitions
            for s in self.series
            for seed in s.seeds
            if (r := c.results.get((s.index, seed)))
        ]

    def series_of(self, row: Mapping[Any, Any]) -> Series:
        """The series of a row of a table. The row's texts do not have to be cleaned."""
        return self._by_key[tuple(clean(row[column]) for column in SERIES)]

    def in_order(self, rows: Iterable[Mapping[Any, Any]]) -> list[tuple[Series, Mapping[Any, Any]]]:
        """Rows of a table, each with its series, in the order of the series."""
        return sorted(((self.series_of(row), row) for row in rows), key=lambda each: each[0].index)

    @cached_property
    def _by_key(self) -> dict[tuple[str, ...], Series]:
        return {(s.run_group, s.agent, s.edition): s for s in self.series}

    @property
    def columns(self) -> list[tuple[Series, Any]]:
        """One column per series and seed."""
        return [(series, seed) for series in self.series for seed in series.seeds]
