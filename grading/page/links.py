"""Links from the page to what the store has of each run: its folder, and the page with its trajectory."""

from __future__ import annotations

from urllib.parse import quote

from markupsafe import Markup

from grading.page.results import Results
from grading.page.view import Result, View

_PAGE = "trajectory.html"
_LINK = Markup('<td><a href="{}">steps</a>')
_PLAIN = Markup("<td data-l={}>")


def links(view: View, results: Results) -> list[Markup] | None:
    """The beginning of a cell for each of `view.results`; None if no run has links.

    Thousands of addresses would be a tenth of a page. So where they follow from the competition, the group and the
    seed, the cell names them by a letter, f for the files and s for the steps, and the page's script makes the links.
    """
    if results.root is None or results.runs is None or results.runs.empty:
        return None
    stored = set(zip(results.runs["run_group"], results.runs["run_id"], strict=True))
    return [_cell(result, results, (result.series.run_group, result.run_id) in stored) for result in view.results]


def _cell(result: Result, results: Results, stored: bool) -> Markup:
    page = results.trajectories.get((result.series.run_group, result.run_id))
    if not stored or not isinstance(result.seed, int):
        return Markup("<td>") if page is None else _LINK.format(quote(page))
    folder = f"{results.root}/runs/{result.series.run_group}/{result.competition_id}/{result.seed}"
    if page is None or page == f"{folder}/{_PAGE}":
        return _PLAIN.format("f" if page is None else "fs")
    return Markup('<td data-l=f><a href="{}">steps</a>').format(quote(page))
