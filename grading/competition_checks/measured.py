"""A prepared competition with what its gates measure, and read more than once."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from grading.competition_checks.chance import scores_of_chance
from grading.competition_checks.groups import Groups, declared_groups, found_groups
from grading.competition_checks.public_files import PublicFile, public_files
from grading.competition_checks.subject import Skipped, Subject, require_small_sample
from grading.competition_checks.submissions import Rows, rows_of
from grading.competition_checks.task_tables import TaskTables, task_tables
from grading.medals import Thresholds

if TYPE_CHECKING:
    import pandas as pd

RunBaseline = Callable[[Path, Path], tuple[Path | None, str]]
"""Runs the baseline agent on public files, given the path of the sample submission. Returns its submission, None if
there is none, and the end of what it said."""


@dataclass(frozen=True)
class Measured:
    """A subject, and what its gates measure."""

    subject: Subject
    run_baseline: RunBaseline | None = None
    figures: dict[str, dict[str, float]] = field(default_factory=dict)
    """What each gate has measured."""

    @cached_property
    def thresholds(self) -> Thresholds:
        """What medals require."""
        return Thresholds.of(self.subject.competition.facts)

    def better(self, score: float, other: float) -> bool:
        """Whether a score is better than another."""
        return score < other if self.thresholds.lower_is_better else score > other

    @cached_property
    def rows(self) -> Rows:
        """The rows of right answers and of the sample submission. Raises `Skipped`, also if they are too many."""
        require_small_sample(self.subject)
        return rows_of(self.subject)

    @cached_property
    def scores_of_chance(self) -> tuple[float, dict[str, float]]:
        """See `chance.scores_of_chance`. Raises `Skipped`."""
        return scores_of_chance(self.subject, self.rows)

    @cached_property
    def tables(self) -> TaskTables:
        """Answers by id, and the public tables. Raises `Skipped`."""
        return task_tables(self.subject, self.rows)

    @cached_property
    def found_groups(self) -> Groups | None:
        """The groups of rows that the public tables show and competition.yaml does not declare."""
        if self.subject.competition.facts.resampling is not None:
            return None
        with contextlib.suppress(Skipped):
            return found_groups(self.tables)
        return None

    @cached_property
    def groups(self) -> pd.Series | None:
        """The group of each test row by its id, declared or found; None if single rows are. Raises `Skipped`."""
        if self.found_groups is not None:
            return self.found_groups.of_rows
        return declared_groups(self.subject, self.tables) if self.subject.competition.facts.resampling else None

    @cached_property
    def files(self) -> list[PublicFile]:
        """The public files."""
        return public_files(self.subject.prepared / "public")
