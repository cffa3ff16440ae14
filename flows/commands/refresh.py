"""Rewriting the report of a run group after its tables have changed."""

from __future__ import annotations

from flows.commands.answers import say
from storage.store import Store


def refresh_report(store: Store, run_group: str) -> None:
    """Write the report and print its path; does nothing for a group without grades."""
    from storage.tables import read_table
    from tasks.report import write_report

    if len(read_table(store, "grades", [run_group])):
        report = write_report(store, [run_group])
        say(store.shown(report))
