"""The results that a page or a summary shows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from grading.statistics.aggregate import Aggregate, By, Facts, Incomplete, Uncertainty, aggregate

if TYPE_CHECKING:
    import pandas as pd

    from grading.medals import Thresholds


@dataclass(frozen=True)
class Results:
    """Tables of one or several run groups, what is known about their competitions, and how to count.

    Everything in the tables is untrusted. Mappings are by competition id unless another key is named.
    """

    grades: pd.DataFrame
    runs: pd.DataFrame | None = None
    snapshots: pd.DataFrame | None = None
    usage: pd.DataFrame | None = None
    examined: Mapping[str, pd.DataFrame] = field(default_factory=dict)
    """The tables of `grading.page.integrity.TABLES` that exist."""

    facts: Facts = field(default_factory=dict)
    """Complexity and category; needed for competitions that have no grade."""
    titles: Mapping[str, str] = field(default_factory=dict)
    thresholds: Mapping[str, Thresholds] = field(default_factory=dict)
    """By default those that the grades state."""
    percentiles: Mapping[str, Sequence[float]] = field(default_factory=dict)
    """21 scores of the leaderboard, best first."""
    conditions: Mapping[str, Mapping[str, object]] = field(default_factory=dict)
    """Further facts to state, by run group."""
    split_sizes: Mapping[str, int] = field(default_factory=dict)
    """Number of competitions by split, so that a split that was run in part is shown as such."""

    expected: Mapping[str, str] | None = None
    """Competition -> split: the competitions that count. By default those that were run."""
    incomplete: Incomplete = "exclude"
    interval: Uncertainty = "t"

    def aggregate(self, by: By = "complexity") -> Aggregate:
        """The rates of these results, see `grading.statistics.aggregate.aggregate`."""
        return aggregate(
            self.grades,
            self.runs,
            expected=self.expected,
            facts=self.facts,
            incomplete=self.incomplete,
            by=by,
            interval=self.interval,
        )
