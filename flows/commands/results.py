"""The results of a run group in a terminal: medals, scores, and the path of the report."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import click

from common.cleaning import clean
from common.units import counted
from competitions import registry
from flows.commands.answers import answer
from flows.commands.tables import Cell, show_table
from storage.store import Store

_STYLES = {
    "gold": "bold yellow",
    "silver": "bold white",
    "bronze": "bold dark_orange",
    "above": "green",
    "below": "dim",
}
_STYLES |= dict.fromkeys(("invalid", "missing", "failed", "ungraded"), "red")


def show_results(store: Store, run_group: str) -> int:
    """Print medals and scores of the group, what went wrong in its runs, and the path of the report.

    Returns the exit code: 1 if every run of an agent crashed, otherwise 0.
    """
    from flows.commands.endings import crashed_agents, problems
    from grading.conditions import mark_notes, split_notes, split_of, switched_on
    from grading.page import medal_table
    from grading.statistics.aggregate import rates_of
    from grading.statistics.series import BENCHMARK_SPLITS
    from storage.tables import read_table
    from tasks.report import counting_of, split_sizes

    grades = read_table(store, "grades", [run_group])
    if not len(grades):
        if not answer({"kind": "result", "run_group": run_group, "grades": []}):
            click.echo("no run was graded")
        return 0
    runs = read_table(store, "runs", [run_group])
    statistics = rates_of(grades, runs, counting_of(store, grades, runs))
    sizes = split_sizes()
    sizes["all"] = sum(sizes[split] for split in BENCHMARK_SPLITS)
    rates = statistics.rates.assign(of=statistics.rates["split"].map(sizes).fillna(statistics.rates["competitions"]))
    crashed = crashed_agents(runs)
    path = store.local("reports", run_group, "report.html")
    report = str(path or store.url("reports", run_group, "report.html"))
    fields = {"grades": grades, "rates": rates, "crashed": crashed, "report": report}
    if answer({"kind": "result", "run_group": run_group, **fields}):
        return 1 if crashed else 0
    for text in switched_on({run_group: runs}) if len(runs) else ():
        click.echo(f"Run {text}.")
    for text in (*split_notes(runs, registry.own_splits()), *mark_notes(runs)):
        click.echo(clean(text))
    own_split = split_of(runs)
    content = medal_table(grades)
    rows: list[tuple[Cell, ...]] = [
        (name, own_split or complexity, *((cell.text, _STYLES.get(cell.kind or "", "")) for cell in cells))
        for name, complexity, cells in content.rows
    ]
    head = [*(column.upper() for column in content.columns[:2]), *content.columns[2:]]
    show_table(head, rows, f"Scores and medals of {run_group}")
    for row in rates[rates["rate"] == "any_medal"].to_dict("records"):
        if row["competitions"]:
            seeds = counted(int(row["seeds"]), "seed")
            most = int(row["of"])
            part = (
                "" if row["competitions"] >= most else f" and {row['competitions']} of {counted(most, 'competition')}"
            )
            click.echo(f"any medal, {row['split']}: {_percent(row['mean'])}{_interval(row)} over {seeds}{part}")
    if len(statistics.gaps):
        click.secho(statistics.statement(), fg="yellow")
    for line in problems(runs, grades, store, run_group):
        click.secho(line, fg=None if line.startswith(" ") else "red")
    for agent in crashed:
        click.secho(f"Every run of {agent} crashed.", fg="red", bold=True)
    if content.model_leaderboards:
        click.secho("The thresholds of the demo come from trained models, not from people.", dim=True)
    click.echo(f"Report: {report}")
    return 1 if crashed else 0


def _interval(row: Mapping[Any, Any]) -> str:
    if math.isnan(row["ci_low"]):
        return ""
    return f" (other runs: {100 * row['ci_low']:.1f} to {_percent(row['ci_high'])})"


def _percent(value: float) -> str:
    return "n/a" if math.isnan(value) else f"{100 * value:.1f} %"
