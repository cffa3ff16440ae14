"""The input of a page or a summary."""

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
    """Tables of one or several run groups, facts about their competitions, and how to count.

    The content of the tables is untrusted. Keys of mappings are competition ids unless another key is named.
    """

    grades: pd.DataFrame
    runs: pd.DataFrame | None = None
    snapshots: pd.DataFrame | None = None
    usage: pd.DataFrame | None = None
    examined: Mapping[str, pd.DataFrame] = field(default_factory=dict)
    """The tables of `grading.page.integrity.TABLES` that exist."""

    facts: Facts = field(default_factory=dict)
    """Complexity and category. Needed for competitions that have no grade."""
    titles: Mapping[str, str] = field(default_factory=dict)
    thresholds: Mapping[str, Thresholds] = field(default_factory=dict)
    """By default those in the grades."""
    percentiles: Mapping[str, Sequence[float]] = field(default_factory=dict)
    """21 scores of the leaderboard, from best to worst."""
    conditions: Mapping[str, Mapping[str, object]] = field(default_factory=dict)
    """Further conditions to state, by run group."""
    leaks: Mapping[tuple[str, str], Sequence[str]] = field(default_factory=dict)
    """(edition, competition) -> known issues by which the edition gives answers away."""
    split_sizes: Mapping[str, int] = field(default_factory=dict)
    """Number of competitions by split, so that the page can mark splits that were run in part."""

    expected: Mapping[str, str] | None = None
    """Competition -> split: the competitions that count. By default those that were run."""
    incomplete: Incomplete = "exclude"
    interval: Uncertainty = "t"

    def aggregate(self, by: By = "complexity") -> Aggregate:
        """The rates of these results; see `grading.statistics.aggregate.aggregate`."""
        return aggregate(
            self.grades,
            self.runs,
            expected=self.expected,
            facts=self.facts,
            incomplete=self.incomplete,
            by=by,
            interval=self.interval,
        )
