"""The grades of the groups that a command compares."""

from __future__ import annotations

from typing import TYPE_CHECKING

from common.errors import UsageError, UserError
from flows.commands.types import one_agent

if TYPE_CHECKING:
    import pandas as pd

    from storage.store import Store


def graded(store: Store, name: str) -> pd.DataFrame:
    """The grades of the group GROUP or GROUP@EDITION, of one agent and one edition.

    Raises `UserError` if there are none, or if they are of several agents or editions.
    """
    from storage.runs.folders import no_runs
    from storage.tables import read_table

    group, _, edition = name.partition("@")
    grades = read_table(store, "grades", [group])
    if edition and len(grades) and edition not in (graded_editions := sorted(set(grades["edition"]))):
        raise UserError(f"group {group!r} is not graded as {edition}, but as {' and '.join(graded_editions)}")
    if edition and len(grades):
        grades = grades[grades["edition"] == edition]
    if not len(grades):
        raise no_runs(store, group, "graded runs")
    one_agent(group, grades)
    editions = sorted(set(grades["edition"]))
    if len(editions) > 1:
        raise UsageError(f"group {group!r} is graded as {' and '.join(editions)}; choose one: {group}@{editions[0]}")
    return grades
