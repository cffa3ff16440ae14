"""The results of a run group in a terminal: medals, scores, and the path of the report."""

from __future__ import annotations

import math

from common.units import counted
from flows.commands.answers import answer
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
    from rich.box import ROUNDED
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    from flows.commands.endings import crashed_agents, problems
    from grading.page import medal_table
    from grading.statistics.aggregate import rates_of
    from storage.tables import read_table
    from tasks.report import counting_of

    console = Console(highlight=False)
    grades = read_table(store, "grades", [run_group])
    if not len(grades):
        if not answer({"kind": "result", "run_group": run_group, "grades": []}):
            console.print("no run was graded")
        return 0
    runs = read_table(store, "runs", [run_group])
    statistics = rates_of(grades, runs, counting_of(store, grades, runs))
    rates = statistics.rates
    crashed = crashed_agents(runs)
    path = store.local("reports", run_group, "report.html")
    report = str(path or store.url("reports", run_group, "report.html"))
    fields = {"grades": grades, "rates": rates, "crashed": crashed, "report": report}
    if answer({"kind": "result", "run_group": run_group, **fields}):
        return 1 if crashed else 0
    content = medal_table(grades)
    table = Table(title=f"Scores and medals of {run_group}", title_justify="left", title_style="bold", box=ROUNDED)
    for column in content.columns:
        table.add_column(column)
    for name, complexity, cells in content.rows:
        table.add_row(name, complexity, *(Text(cell.text, _STYLES.get(cell.kind or "", "")) for cell in cells))
    console.print(table)
    for row in rates[rates["rate"] == "any_medal"].to_dict("records"):
        if row["competitions"]:
            error = "" if math.isnan(row["sem"]) else f" ± {_percent(row['sem'])}"
            seeds = counted(int(row["seeds"]), "seed")
            console.print(f"any medal, {row['split']}: {_percent(row['mean'])}{error} over {seeds}")
    if len(statistics.gaps):
        console.print(statistics.statement(), style="yellow")
    for line in problems(runs, grades, store, run_group):
        console.print(Text(line, "" if line.startswith(" ") else "red"), soft_wrap=True)
    for agent in crashed:
        console.print(Text(f"Every run of {agent} crashed.", "bold red"))
    if content.model_leaderboards:
        console.print("The thresholds of the demo come from trained models, not from people.", style="dim")
    console.print(f"Report: {report}", soft_wrap=True)
    return 1 if crashed else 0


def _percent(value: float) -> str:
    return "n/a" if math.isnan(value) else f"{100 * value:.1f} %"
