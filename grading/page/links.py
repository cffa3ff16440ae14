"""Links from the page to what the store has of each run: its folder, the page with its trajectory, and its log."""

from __future__ import annotations

from urllib.parse import quote

from markupsafe import Markup

from grading.page.results import Results
from grading.page.view import Result, View

_FILES = {"trajectory": "trajectory.html", "log": "logs/agent.log"}
"""What is linked, with its usual path in the folder of a run."""
_LINK = Markup(' <a href="{}">{}</a>')


def links(view: View, results: Results) -> list[Markup] | None:
    """The beginning of a cell for each of `view.results`; None if no run has links.

    Thousands of addresses would be a tenth of a page. So where they follow from the competition, the group and the
    seed, the cell names them by their first letters, f for the folder, and the page's script makes the links.
    """
    if results.root is None or results.runs is None or results.runs.empty:
        return None
    stored = set(zip(results.runs["run_group"], results.runs["run_id"], strict=True))
    return [_cell(result, results, (result.series.run_group, result.run_id) in stored) for result in view.results]


def _cell(result: Result, results: Results, stored: bool) -> Markup:
    run = (result.series.run_group, result.run_id)
    folder = f"{results.root}/runs/{result.series.run_group}/{result.competition_id}/{result.seed}"
    usual, others = "f" if stored and isinstance(result.seed, int) else "", Markup("")
    for name, paths in (("trajectory", results.trajectories), ("log", results.logs)):
        if usual and paths.get(run) == f"{folder}/{_FILES[name]}":
            usual += name[0]
        elif run in paths:
            others += _LINK.format(quote(paths[run]), name)
    return (Markup("<td data-l={}>").format(usual) if usual else Markup("<td>")) + others
