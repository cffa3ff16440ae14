"""mlebench ls."""

from __future__ import annotations

import click

from common.errors import UserError
from flows.commands.options import StoreOptions, takes
from flows.commands.prepare import show_other_code
from grading.words import score_and_medal
from storage.runs.folders import finished_folders, grades_of, runs_of
from storage.runs.records import RunRecord
from storage.store import Store


@click.command("ls")
@click.argument("run_group", required=False)
@takes(storage=StoreOptions)
def command(run_group: str | None, storage: StoreOptions) -> None:
    """List the run groups in the store, or the runs of RUN_GROUP.

    Also names the prepared datasets that were made by other code than the current one.

    The list is made from the records of runs, so a group in progress is listed with its finished runs.
    """
    place = readable(storage.open())
    lines = _runs(place, run_group) if run_group else _groups(place)
    widths = [max(len(line[column]) for line in lines) for column in range(len(lines[0]))]
    for line in lines:
        click.echo("  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip())
    if run_group is None:
        show_other_code(place)


def readable(store: Store) -> Store:
    """The store, after a check that it can be read. Raises `StoreError` if it cannot."""
    from storage.remote import describe_error
    from storage.store import fsspec_at
    from storage.writers import StoreError

    if not store.top.local:
        try:
            fs, root = fsspec_at(store.root)
            fs.exists(root)
        except Exception as error:  # each file system has its own errors
            raise StoreError(f"store {store.root} cannot be read: {describe_error(error)}") from error
    return store


def _groups(store: Store) -> list[tuple[str, ...]]:
    """Print one line per run group, sorted by name."""
    found: dict[str, list[RunRecord]] = {}
    folders = finished_folders(store)
    records_of = store.concurrently([folder.read_run_if_valid for folder in folders])
    for folder, record in zip(folders, records_of, strict=True):
        found.setdefault(folder.run_group, []).extend([record] if record else [])
    if not found:
        raise UserError(f"no runs in {store.root}; create some with: mlebench run")
    lines = [("RUN GROUP", "RUNS", "AGENT", "LAST FINISHED")]
    for group, records in sorted(found.items()):
        agents = ", ".join(sorted({record.agent for record in records}))
        last = max((record.finished_at for record in records if record.finished_at), default=None)
        lines.append((group, str(len(records)), agents, f"{last:%Y-%m-%d %H:%M}" if last else "-"))
    return list(lines)


def _runs(store: Store, run_group: str) -> list[tuple[str, ...]]:
    """Print one line per finished run of the group."""
    lines: list[tuple[str, ...]] = [("RUN", "STATUS", "SECONDS", "SCORE", "MEDAL")]
    runs = runs_of(store, run_group)
    for run, grade in zip(runs, grades_of(store, runs), strict=True):
        seconds = run.record.duration_seconds
        cells = score_and_medal(grade.to_row() if grade else None)
        took = "-" if seconds is None else f"{seconds:.0f}"
        lines.append((run.folder.name, run.record.status or "-", took, *cells))
    return lines
