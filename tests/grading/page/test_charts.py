"""Charts of scores against costs, and of how percentiles are distributed."""

import re

import numpy as np
import pandas as pd
import pytest

from grading.page import render_page
from grading.page.build import build_view
from grading.page.charts import around
from grading.page.scatter import Point, scatter
from tests.grading.page.board import board
from tests.grading.page.pages import calls, graded, many, page, words

SERIES = build_view(pd.DataFrame([graded("cactus", 1, 0.9, agent=f"agent-{n}") for n in range(4)])).series


def numbers(chart: str, pattern: str) -> list[tuple[float, ...]]:
    return [tuple(float(each) for each in found) for found in re.findall(pattern, chart)]


def test_the_front_is_a_step_line_over_the_best_for_their_cost() -> None:
    costs_and_scores = [(1.0, 0.2), (2.0, 0.5), (3.0, 0.3), (4.0, 0.8)]
    points = [Point(one, *pair) for one, pair in zip(SERIES, costs_and_scores, strict=True)]
    chart = str(scatter(points, "${:g}".format, "scores"))
    marks = numbers(chart, r'<use href="#m\d" x="([\d.]+)" y="([\d.]+)"')
    corners = numbers(chart.split('class="front" points="')[1].split('"')[0], r"([\d.]+),([\d.]+)")
    first, second, _, last = marks
    assert corners[:5] == [first, (second[0], first[1]), second, (last[0], second[1]), last]
    assert corners[5][1] == last[1], "no more is known of dearer agents"
    assert "agent-2: 30.0 % for $3" in chart


def test_labels_stand_beside_the_front() -> None:
    """The line goes on to the right of a dot on it, at the height where its label would stand otherwise."""
    points = [Point(one, *pair) for one, pair in zip(SERIES[:2], [(1.0, 0.2), (2.0, 0.5)], strict=True)]
    chart = str(scatter(points, str, "scores"))
    marks = numbers(chart, r'<use href="#m\d" x="([\d.]+)" y="([\d.]+)"')
    labels = re.findall(r'<text class="halo end s\d" x="([\d.]+)" y="([\d.]+)" text-anchor="(\w+)"', chart)
    for (x, y), (left, base, anchor) in zip(marks, labels, strict=True):
        assert not (anchor == "start" and float(left) > x and abs(float(base) - y - 4) < 1)


def test_labels_of_equal_dots_stand_apart() -> None:
    points = [Point(one, 1.0, 0.5) for one in SERIES]
    places = numbers(str(scatter(points, str, "scores")), r'<text class="halo end s\d" x="([\d.]+)" y="([\d.]+)"')
    assert len(set(places)) == 4


@pytest.mark.parametrize(
    ("least", "most", "log"), [(1.0, 9.0, False), (1.0, 11.0, True), (3e-5, 2e4, True), (2, 2, False)]
)
def test_an_axis_of_costs_contains_them_and_is_logarithmic_over_a_decade(least: float, most: float, log: bool) -> None:
    axis = around(least, most, "{:g}".format)
    assert axis.log == log
    assert axis.low <= least <= most <= axis.high
    assert 2 <= len(axis.ticks) <= 12
    assert 0 <= axis.at(least) <= axis.at(most) <= 1


def test_scores_stand_against_dollars_and_time() -> None:
    grades, runs = many(3)
    runs["duration_seconds"] = [3600.0 * (1 + int(agent[-1])) for agent in runs["agent"]]
    cells = [(f"competition-{c}", s) for c in range(4) for s in range(3)]
    usage = pd.concat(
        [calls(*((*cell, 0.5 + a) for cell in cells), group=f"group-{a}", agent=f"agent-{a}") for a in range(2)]
    )
    html = page(grades, runs, usage=usage)
    charts = {
        title: html.split(f'<figure data-copy="{title}"')[1].split("</figure>")[0]
        for title in ("Any medal against dollars per run", "Any medal against time per run")
    }
    dollars, time = charts.values()
    assert "agent-1: 33.3 % for $1.50" in dollars
    assert "agent-2" not in dollars, "its cost is not known"
    assert "agent-2: 33.3 % for 3 h" in time
    assert "Mean human percentile against" not in html, "there are no leaderboards"
    assert "against dollars per run" not in page(*many(1)), "one agent has nothing beside it"


def test_a_profile_is_the_share_of_runs_above_each_percentile() -> None:
    results = board(2, competitions=20, requests=2)
    html = render_page(results)
    chart = html.split('<figure data-copy="profiles"')[1].split("</figure>")[0]
    agent = results.view.series[0].agent
    shown = chart.split(f"<title>{agent}: ")[1].split("</title>")[0]
    shares = {float(at): float(share) for share, at in re.findall(r"([\d.]+) % at (\d+)", shown.replace("%, ", "% , "))}
    percentiles = pd.DataFrame(
        [
            (r.competition_id, 0 if r.score is None else r.percentile)
            for r in results.view.results
            if r.series.agent == agent and r.kind not in ("failed", "ungraded")
        ],
        columns=["name", "share"],
    ).dropna()
    for at in (20, 60, 80):
        by_competition = (percentiles["share"] > at).groupby(percentiles["name"]).mean()
        assert shares[at] == pytest.approx(100 * np.mean(by_competition), abs=0.06)
    assert chart.count("band-of") == 2
    assert "Performance profiles" not in words(page())
