"""mlebench ls."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import click

from common.errors import UsageError, UserError
from common.units import elapsed
from flows.commands.advice import advised
from flows.commands.answers import answer, takes_json
from flows.commands.episode_tables import show_episodes
from flows.commands.options import StoreOptions, takes
from flows.commands.prepare import show_other_code
from flows.commands.tables import show_table
from flows.commands.types import RUN_GROUP
from grading.words import kind_of, score_and_medal
from storage.runs.files import RUN
from storage.runs.folders import folders_with_each, grades_of, no_runs, read_runs
from storage.runs.records import RunRecord
from storage.runs.tries import FILE
from storage.store import Store
from tasks.wiring.in_progress import in_progress


@click.command("ls")
@click.argument("run_group", type=RUN_GROUP, required=False)
@click.option("--episodes", is_flag=True, help="List episodes instead of runs.")
@click.option(
    "--report",
    type=click.Path(dir_okay=False, path_type=Path),
    metavar="FILE",
    help="With --episodes RUN_GROUP: also write a page with their learning curve into this file.",
)
@takes_json
@takes(storage=StoreOptions)
def command(run_group: str | None, episodes: bool, report: Path | None, storage: StoreOptions) -> None:
    """List the run groups in the store, or the runs of RUN_GROUP.

    Also names the prepared datasets that were made by other code than the current one.

    Runs in progress are listed with their host and the time since their agent was started: those of this machine, and
    those of other hosts that use the same store. A run is `interrupted` if its agent was started and nobody waits for
    it any more; the command that started it continues it. Of each run, the host, the number of GPUs, how often its
    agent was started if more than once, and what language models have cost are listed; columns without any value are
    left out. FEEDBACK is the share of the test rows on which agents of a group were told scores.

    With --episodes, RUN_GROUP is a --name of `mlebench serve`, whose episodes are listed in the order of time, with the
    mean rewards of five to twenty batches. Without RUN_GROUP, these names are listed.
    """
    if report is not None and not (episodes and run_group):
        raise UsageError("--report needs --episodes and the name of a training")
    store = storage.open()
    if episodes:
        show_episodes(store, run_group, report)
        return
    rows = _runs(store, run_group) if run_group else _groups(store)
    if answer([{name: value for name, value in row.items() if name != "cells"} for row in rows]):
        return
    lines = _lines_of_runs(rows) if run_group else _lines_of_groups(rows)
    show_table(lines[0], lines[1:])
    if run_group is None:
        click.echo(f"in {store.root}")
        show_other_code(store)


def _groups(store: Store) -> list[dict[str, Any]]:
    """One row per run group, sorted by name."""
    finished, begun = folders_with_each(store, [RUN, FILE])
    live_runs = in_progress(store, begun=begun)
    folders = (*finished, *(run.folder for run in live_runs))
    records_of_groups: dict[str, list[RunRecord]] = {folder.run_group: [] for folder in folders}
    for stored_run in read_runs(store, finished, skip_invalid=True):
        records_of_groups[stored_run.folder.run_group].append(stored_run.record)
    if not records_of_groups:
        listing = f"; its episodes: {advised('mlebench ls --episodes', store)}"
        there = listing if store.exists(store.url("episodes")) else ""
        raise UserError(f"no runs in {store.root}; create some with: {advised('mlebench run', store)}{there}")
    return [
        {
            "run_group": group,
            "runs": len(records),
            "agents": sorted({record.agent for record in records}),
            "feedback": sorted({record.feedback for record in records if record.feedback is not None}),
            "runs_with_feedback": sum(record.feedback is not None for record in records),
            "last_finished": max((record.finished_at for record in records if record.finished_at), default=None),
            "cost_usd": sum(record.gateway_cost_usd or 0.0 for record in records),
            "in_progress": Counter(run.state for run in live_runs if run.folder.run_group == group),
        }
        for group, records in sorted(records_of_groups.items())
    ]


def _runs(store: Store, run_group: str) -> list[dict[str, Any]]:
    """One row per run of the group: finished ones, then those in progress."""
    finished, begun = folders_with_each(store, [RUN, FILE], run_group)
    live_runs = in_progress(store, run_group, begun)
    runs = read_runs(store, finished, skip_invalid=False)
    if not runs and not live_runs:
        raise no_runs(store, run_group, "finished runs")
    rows: list[dict[str, Any]] = []
    for run, grade in zip(runs, grades_of(store, runs), strict=True):
        record, graded = run.record, grade.to_row() if grade else None
        rows.append(
            {
                "run": run.folder.name,
                "status": record.status,
                "seconds": record.duration_seconds,
                "outcome": grade.outcome if grade else None,
                "score": grade.score if grade else None,
                "feedback": record.feedback,
                "medal": kind_of(graded) if graded else None,
                "host": record.host,
                "gpus": record.gpus,
                "tries": record.tries,
                "resumed": record.resumed,
                "cost_usd": record.gateway_cost_usd,
                "cells": score_and_medal(graded),
            }
        )
    rows += [
        {
            "run": live_run.folder.name,
            "status": live_run.state,
            "seconds": live_run.seconds,
            "outcome": None,
            "score": None,
            "feedback": None,
            "medal": None,
            "host": live_run.host,
            "gpus": live_run.gpus,
            "tries": live_run.tries,
            "resumed": live_run.resumed,
            "cost_usd": None,
            "cells": ("-", "-"),
        }
        for live_run in live_runs
    ]
    return rows


def _lines_of_groups(rows: list[dict[str, Any]]) -> list[tuple[str, ...]]:
    names = ("RUN GROUP", "RUNS", "AGENT", "LAST FINISHED (UTC)", "FEEDBACK", "COST", "IN PROGRESS")
    lines: list[tuple[str, ...]] = [names]
    for row in rows:
        last = row["last_finished"]
        lines.append(
            (
                row["run_group"],
                str(row["runs"]),
                ", ".join(row["agents"]) or "-",
                f"{last:%Y-%m-%d %H:%M}" if last else "-",
                _feedback(row),
                _dollars(row["cost_usd"]),
                ", ".join(f"{count} {state}" for state, count in sorted(row["in_progress"].items())) or "-",
            )
        )
    return _with_values(lines, 4)


def _lines_of_runs(rows: list[dict[str, Any]]) -> list[tuple[str, ...]]:
    lines: list[tuple[str, ...]] = [("RUN", "STATUS", "TIME", "SCORE", "MEDAL", "HOST", "GPUS", "TRY", "COST")]
    for row in rows:
        time = "-" if row["seconds"] is None else elapsed(row["seconds"])
        usual = row["tries"] in (None, 1) and not row["resumed"]
        tries = "-" if usual else f"{row['tries']}{', resumed' if row['resumed'] else ''}"
        placement = (row["host"] or "-", str(row["gpus"] or "-"), tries, _dollars(row["cost_usd"]))
        lines.append((row["run"], row["status"] or "-", time, *row["cells"], *placement))
    return _with_values(lines, 5)


def _feedback(row: dict[str, Any]) -> str:
    """The shares of the test rows on which agents were told scores, and in how many runs if not in all."""
    shares = " or ".join(f"{100 * share:g} %" for share in row["feedback"])
    some = shares and row["runs_with_feedback"] < row["runs"]
    return f"{shares} ({row['runs_with_feedback']} of {row['runs']} runs)" if some else shares or "-"


def _dollars(amount: float | None) -> str:
    return f"${amount:,.2f}" if amount else "-"


def _with_values(lines: list[tuple[str, ...]], always: int) -> list[tuple[str, ...]]:
    """The lines without columns in which no line has a value, apart from the first ones."""
    shown_columns = [
        column for column in range(len(lines[0])) if column < always or any(line[column] != "-" for line in lines[1:])
    ]
    return [tuple(line[column] for column in shown_columns) for line in lines]
