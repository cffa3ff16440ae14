"""mlebench ls."""

from __future__ import annotations

from collections import Counter

import click

from common.errors import UserError
from flows.commands.advice import advised
from flows.commands.options import RUN_GROUP, StoreOptions, takes
from flows.commands.prepare import show_other_code
from grading.words import score_and_medal
from storage.runs.folders import RUN, folders_with_each, grades_of, no_runs, read_runs
from storage.runs.records import RunRecord
from storage.store import Store
from tasks.wiring.going import in_progress
from tasks.wiring.tries import FILE


@click.command("ls")
@click.argument("run_group", type=RUN_GROUP, required=False)
@takes(storage=StoreOptions)
def command(run_group: str | None, storage: StoreOptions) -> None:
    """List the run groups in the store, or the runs of RUN_GROUP.

    Also names the prepared datasets that were made by other code than the current one.

    Runs in progress are listed with their host and the time since their agent was started: those of this machine, and
    those of other hosts that use the same store. A run is `interrupted` if its agent was started and nobody waits for
    it any more; the command that started it continues it.
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
    """One line per run group, sorted by name."""
    finished, begun = folders_with_each(store, [RUN, FILE])
    going = in_progress(store, begun=begun)
    found: dict[str, list[RunRecord]] = {each.run_group: [] for each in (*finished, *(each.folder for each in going))}
    for run in read_runs(store, finished, skip_invalid=True):
        found[run.folder.run_group].append(run.record)
    if not found:
        raise UserError(f"no runs in {store.root}; create some with: {advised('mlebench run', store)}")
    lines: list[tuple[str, ...]] = [
        ("RUN GROUP", "RUNS", "AGENT", "LAST FINISHED", *(["IN PROGRESS"] if going else []))
    ]
    for group, records in sorted(found.items()):
        agents = ", ".join(sorted({record.agent for record in records})) or "-"
        last = max((record.finished_at for record in records if record.finished_at), default=None)
        states = Counter(each.state for each in going if each.folder.run_group == group)
        progress = [", ".join(f"{count} {state}" for state, count in sorted(states.items()))] if going else []
        lines.append((group, str(len(records)), agents, f"{last:%Y-%m-%d %H:%M}" if last else "-", *progress))
    return lines


def _runs(store: Store, run_group: str) -> list[tuple[str, ...]]:
    """One line per run of the group: finished ones, then those in progress."""
    finished, begun = folders_with_each(store, [RUN, FILE], run_group)
    going = in_progress(store, run_group, begun)
    runs = read_runs(store, finished, skip_invalid=False)
    if not runs and not going:
        raise no_runs(store, run_group, "finished runs")
    hosts = ["HOST"] if going else []
    lines: list[tuple[str, ...]] = [("RUN", "STATUS", "SECONDS", "SCORE", "MEDAL", *hosts)]
    for run, grade in zip(runs, grades_of(store, runs), strict=True):
        seconds = run.record.duration_seconds
        cells = score_and_medal(grade.to_row() if grade else None)
        took = "-" if seconds is None else f"{seconds:.0f}"
        lines.append((run.folder.name, run.record.status or "-", took, *cells, *["-" for _ in hosts]))
    for each in going:
        took = "-" if each.seconds is None else f"{each.seconds:.0f}"
        lines.append((each.folder.name, each.state, took, "-", "-", each.host))
    return lines
