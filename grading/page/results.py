"""The input of a page or a summary."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, cast

from grading.page.build import build_view
from grading.page.order import best_first
from grading.page.view import View
from grading.statistics.aggregate import Aggregate, rates_of
from grading.statistics.attempts import pass_at
from grading.statistics.counting import By, Counting, Facts, Incomplete, Planned
from grading.statistics.learning import Spending, learning, spending

if TYPE_CHECKING:
    import pandas as pd

    from grading.medals import Thresholds

ON_THE_WEB = " (on the web)"
"""How issues end that only agents with a network can use: most competitions have one."""


@dataclass(frozen=True)
class Results:
    """Tables of one or several run groups, facts about their competitions, and how to count.

    The content of the tables is untrusted. Keys of mappings are competition ids unless another key is named. What
    several sections show, or the page and the summary, is computed once: the tables must not be changed.
    """

    grades: pd.DataFrame
    runs: pd.DataFrame | None = None
    snapshots: pd.DataFrame | None = None
    usage: pd.DataFrame | None = None
    own: pd.DataFrame | None = None
    """The table `own_validations`."""
    public_scores: pd.DataFrame | None = None
    """The rows of the table `snapshots` that are files with a public score, which `snapshots` must not have."""
    validations: pd.DataFrame | None = None
    """The table `validations`."""
    noise: pd.DataFrame | None = None
    """The table `split_noise`."""
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
    root: str | None = None
    """The root of the store as seen from the report's folder, for links to the folders of runs."""
    trajectories: Mapping[tuple[str, str], str] = field(default_factory=dict)
    """(run group, run id) -> path from the report's folder to the page with the run's trajectory."""
    logs: Mapping[tuple[str, str], str] = field(default_factory=dict)
    """(run group, run id) -> path from the report's folder to the log of what the agent printed."""
    leaks: Mapping[tuple[str, str], Sequence[str]] = field(default_factory=dict)
    """(edition, competition) -> known issues by which the edition gives answers away; see `ON_THE_WEB`."""
    comparability: Mapping[tuple[str, str], tuple[str, str]] = field(default_factory=dict)
    """(edition, competition) -> how well its scores compare with medal thresholds, and why."""
    split_sizes: Mapping[str, int] = field(default_factory=dict)
    """Number of competitions by split, so that the page can mark splits that were run in part."""
    notes: Sequence[str] = ()
    """What splits of one's own are, and which competitions were marked; see `split_notes` and `mark_notes`."""
    unavailable: Mapping[str, tuple[str, str]] = field(default_factory=dict)
    """Of competitions that not everybody can download, also those that were not run: the split, and why."""

    ended: Mapping[str, str | None] = field(default_factory=dict)
    """Month in which submissions to each competition ended, YYYY-MM."""
    stated_cutoffs: Mapping[str, str] = field(default_factory=dict)
    """Agent -> month of the newest training data of its model, instead of what its runs state."""
    expected: Mapping[str, str] | None = None
    """Competition -> split: the competitions that count. By default those that were run."""
    planned: Planned = field(default_factory=dict)
    """(competition, seed) of the runs that each group planned, so that the page can say that it is not complete."""
    incomplete: Incomplete = "available"

    @property
    def leaking(self) -> dict[str, set[str]]:
        """Competitions whose data or grader give answers away, by edition; not those with answers on the web only."""
        found: dict[str, set[str]] = {}
        for (edition, name), issues in self.leaks.items():
            if not all(issue.endswith(ON_THE_WEB) for issue in issues):
                found.setdefault(edition, set()).add(name)
        return found

    @property
    def cutoffs(self) -> dict[tuple[str, str], str]:
        """(run group, agent) -> month of the newest training data of its model, where all runs state the same one."""
        found: dict[tuple[str, str], str] = {}
        tables = [self.grades] if self.runs is None or self.runs.empty else [self.grades, self.runs]
        for table in tables:
            for key, part in table.groupby(["run_group", "agent"]) if len(table) else ():
                group, agent = map(str, cast("tuple[str, str]", key))
                months = set(part["knowledge_cutoff"].dropna()) if "knowledge_cutoff" in part else set()
                if agent in self.stated_cutoffs:
                    found[group, agent] = self.stated_cutoffs[agent]
                elif len(months) == 1:
                    found[group, agent] = str(months.pop())
        return found

    @property
    def findings(self) -> set[tuple[str, str]]:
        """(run group, run id) of the runs in which an examination found something that a person should look at."""
        found: set[tuple[str, str]] = set()
        for name, column, value in (("violations", "severity", "violation"), ("plagiarism", "flagged", True)):
            table = self.examined.get(name)
            if table is not None and len(table):
                rows = table[table[column] == value]
                found |= set(zip(rows["run_group"], rows["run_id"], strict=True))
        return found

    @property
    def counting(self) -> Counting:
        """How the runs are counted, in every figure."""
        return Counting(self.expected, self.facts, self.incomplete, self.planned)

    @cached_property
    def view(self) -> View:
        """The rows of these results as the page shows them, with cleaned text, and the best agent first.

        Competitions that do not count are left out, but not the series that ran only those.
        """
        rates = self.aggregate().rates
        view = build_view(
            self.grades,
            self.runs,
            thresholds=self.thresholds,
            percentiles=self.percentiles,
            titles=self.titles,
            facts=self.facts,
            ranked=best_first(rates[rates["rate"] == "any_medal"].to_dict("records"), self.split_sizes),
        )
        if self.expected is None:
            return view
        competitions = (each for each in view.competitions if each.id in self.expected)
        return replace(view, competitions=tuple(replace(c, complexity=self.expected[c.id]) for c in competitions))

    @cached_property
    def pass_at(self) -> pd.DataFrame:
        """pass@k of any medal; see `grading.statistics.attempts.pass_at`."""
        return pass_at(self.grades, self.runs, self.counting, rates=("any_medal",))

    @cached_property
    def spent(self) -> Spending:
        """What each run had spent on language models in its course."""
        return spending(self.runs, self.usage)

    @cached_property
    def learning(self) -> pd.DataFrame:
        """Medals and human percentiles over time and dollars; see `grading.statistics.learning.learning`."""
        snapshots = self.grades.iloc[:0] if self.snapshots is None else self.snapshots
        return learning(self.grades, snapshots, self.runs, self.spent, self.counting, self.percentiles)

    @cached_property
    def chosen(self) -> Results:
        """These results with the rows of the competitions that count, for tables and figures of single runs.

        Familiarity keeps all rows: its correlation is that of the whole run group.
        """
        if self.expected is None:
            return self
        names = ("grades", "runs", "snapshots", "usage", "own", "public_scores", "validations", "noise")
        tables: dict[str, Any] = {
            name: self.counting.chosen(table) for name in names if (table := getattr(self, name)) is not None
        }
        findings = {
            name: table if name.startswith("familiarity") else self.counting.chosen(table)
            for name, table in self.examined.items()
        }
        return replace(self, examined=findings, **tables)

    def aggregate(self, by: By = "complexity") -> Aggregate:
        """The rates of these results; see `grading.statistics.aggregate.rates_of`."""
        if by not in self._aggregates:
            self._aggregates[by] = rates_of(self.grades, self.runs, self.counting, by)
        return self._aggregates[by]

    @cached_property
    def _aggregates(self) -> dict[By, Aggregate]:
        return {}
