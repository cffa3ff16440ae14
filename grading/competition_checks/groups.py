"""Rows of the test set that belong together, such as those of a patient: as declared, or as the public tables show."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from common.units import listed
from grading.workers.cutting import Uncuttable, cutter

if TYPE_CHECKING:
    import pandas as pd

    from grading.competition_checks.subject import Subject
    from grading.competition_checks.task_tables import TaskTables

_MIN_GROUPS, _MIN_ROWS = 3, 2.0
"""Values of a column in the test set, and rows of each, from which it is no chance that the other part has none."""
_START = r"^(.+)[_-][^_-]*$"
"""Finds the part of ids such as `patient7_3` that several may share."""


@dataclass(frozen=True)
class Groups:
    """Columns whose values repeat within the test set, and never occur in both parts."""

    names: list[str]
    """The columns, those with the fewest values first."""
    of_rows: pd.Series
    """The values of the first one. Index: ids of the test set."""

    def note(self) -> str:
        """What to do about them."""
        return (
            f"rows come in groups by {listed(self.names)}: the {len(self.of_rows)} rows of the test set are of "
            f"{self.of_rows.nunique()} groups that the training data lacks; state `resampling` in competition.yaml, "
            "else the noise of scores is underestimated"
        )


def found_groups(tables: TaskTables) -> Groups | None:
    """The groups that the public tables show; None if there are none."""
    import pandas as pd

    candidates: dict[str, pd.Series] = {}
    if tables.test is not None and tables.train is not None:
        candidates = {
            name: tables.test[name]
            for name in tables.features
            if name in tables.train and _are_groups(tables.test[name], tables.train[name])
        }
    if not candidates:
        candidates = dict(_starts_of_ids(tables))
    if not candidates:
        return None
    names = sorted(candidates, key=lambda name: candidates[name].nunique())
    ids = pd.Series(tables.answers.index, index=tables.answers.index)
    return Groups(names, candidates[names[0]].reindex(ids.index).fillna(ids))


def declared_groups(subject: Subject, tables: TaskTables) -> pd.Series | None:
    """The group of each test row, by `resampling` in competition.yaml. Index: ids. None if the answers lack it."""
    import pandas as pd

    answers = subject.answers
    try:
        cut = cutter(answers, answers, subject.competition.facts.resampling)
    except Uncuttable:
        return None
    ids = answers[cut.key].astype(str)
    groups = pd.Series(cut.of_answers, index=ids.to_numpy())
    groups = groups[~groups.index.duplicated()].reindex(tables.answers.index)
    return None if groups.isna().any() else groups


def _starts_of_ids(tables: TaskTables) -> Iterator[tuple[str, pd.Series]]:
    import pandas as pd

    name = tables.answers.index.name
    if tables.train is not None and name in tables.train:
        ids = pd.Series(tables.answers.index, index=tables.answers.index, dtype=str)
        own, others = (each.str.extract(_START, expand=False).dropna() for each in (ids, tables.train[name]))
        if len(own) == len(ids) and _are_groups(own, others):
            yield f"the start of {name}", own


def _are_groups(test: pd.Series, train: pd.Series) -> bool:
    count = test.nunique()
    return (
        count >= _MIN_GROUPS
        and len(test) >= _MIN_ROWS * count
        and train.nunique() >= _MIN_GROUPS
        and not test.isin(train).any()
    )
