"""What an agent learns from: the answers by id, and the public tables that have the target or the test rows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from grading.competition_checks.public_tables import not_read, public_tables
from grading.competition_checks.subject import Skipped

if TYPE_CHECKING:
    import pandas as pd

    from grading.competition_checks.subject import Subject
    from grading.competition_checks.submissions import Rows

_MIN_SHARE_OF_IDS = 0.5
"""Share of the test ids in a column from which it is one of ids: a few numbers are in many columns by chance."""


@dataclass(frozen=True)
class TaskTables:
    """Answers by id, and the public tables. All cells are texts."""

    answers: pd.DataFrame
    """Index: ids, in the order of the sample submission. Columns: what is predicted."""
    test: pd.DataFrame | None
    """The public table with the test rows, in its own order. Index: ids. None if there is none."""
    train: pd.DataFrame | None
    """The public table with the target. None if there is none."""
    target: str | None
    """The column of `train` with the answers, or, where there is a column of answers for each class, with the class."""
    others: dict[str, pd.DataFrame]
    """Further public tables that have the test ids, by their paths. Index: ids."""
    more_of_training: bool
    """Whether public tables without test ids have columns beside ids and answers, and none is that of the test rows
    by their order."""

    @property
    def features(self) -> list[str]:
        """The columns of the test rows, without what is predicted."""
        return [] if self.test is None else [str(name) for name in self.test if name not in self.answers]

    @property
    def test_target(self) -> pd.Series:
        """The answers of the test rows in the form of `target`."""
        import pandas as pd

        if self.target is None or self.target in self.answers or self.answers.shape[1] == 1:
            return self.answers[self.target if self.target in self.answers else self.answers.columns[0]]
        return self.answers.apply(pd.to_numeric, errors="coerce").idxmax(axis=1)


def task_tables(subject: Subject, rows: Rows) -> TaskTables:
    """Raises `Skipped` if rows are not identified by one column."""
    import pandas as pd

    if len(rows.ids) > 1:
        raise Skipped("rows are identified by several columns")
    answers = pd.DataFrame(rows.right, columns=rows.header, dtype=str).set_index(rows.header[rows.ids[0]])
    if not answers.index.is_unique:
        raise Skipped("ids are repeated")
    answers = answers.reindex(list(dict.fromkeys(row[rows.ids[0]] for row in rows.sample)))
    test: pd.DataFrame | None = None
    train: pd.DataFrame | None = None
    target: str | None = None
    more: dict[str, pd.DataFrame] = {}
    unread: list[str] = []
    more_of_training, by_order = False, False
    for path, table in public_tables(subject.prepared / "public", subject.path("sample_submission").name, unread):
        if name := _target(table, answers):  # even if it has the test ids: those of both parts may be the same numbers
            if train is None or len(table.columns) > len(train.columns):
                train, target = table, name
        elif key := _key(table, answers):
            more[path] = rows_of_test = table[table[key].isin(answers.index)].drop_duplicates(key).set_index(key)
            if test is None or len(rows_of_test.columns) > len(test.columns):
                test = rows_of_test
            continue
        by_order |= not name and len(table) in (len(answers), len(answers) - 1)  # arrays, tables without a header
        more_of_training |= not {*table.columns} <= {answers.index.name, *answers, name}
    subject.not_covered["features"] = not_read(unread)
    others = {path: table for path, table in more.items() if table is not test}
    return TaskTables(answers, test, train, target, others, more_of_training and not by_order)


def _key(table: pd.DataFrame, answers: pd.DataFrame) -> str | None:
    """The column with the test ids."""
    named = [name for name in table if name == answers.index.name]
    shares = {name: answers.index.isin(table[name]).mean() for name in named or table.columns}
    best = max(shares, key=lambda name: shares[name], default=None)
    return None if best is None or shares[best] <= _MIN_SHARE_OF_IDS else str(best)


def _target(table: pd.DataFrame, answers: pd.DataFrame) -> str | None:
    """The column of training rows with what is predicted; None if there is none."""
    columns = [name for name in answers if name in table]
    if columns:
        return str(columns[0])
    classes = set(answers.columns)
    return next(
        (str(name) for name in table if len(classes) > 1 and len(values := set(table[name])) > 1 and values <= classes),
        None,
    )
