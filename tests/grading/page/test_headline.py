"""The first figure: agents from best to worst, published agents, and what people reach."""

import itertools
import math
import re
from typing import Any

import pandas as pd
import pytest

from competitions.leaderboard import medal_places
from grading.page.charts import spread
from grading.page.headline import published_agents
from grading.statistics.series import BENCHMARK_SPLITS
from tests.grading.page.pages import HIGHER, RUNS, Document, graded, many, page, words


def shown(html: str) -> list[str]:
    """The agents in the order of the figure."""
    rows = [attrs for tag, attrs in Document(html).elements if tag == "tr" and "data-agent" in attrs]
    return [str(attrs["data-agent"]) for attrs in rows]


def of(agent: str, scores: list[float], **more: Any) -> list[dict[str, Any]]:
    return [graded(f"c-{n}", 1, score, agent=agent, thresholds=HIGHER, **more) for n, score in enumerate(scores)]


def test_the_best_agent_comes_first_and_one_without_a_rate_last() -> None:
    nothing = [graded("c-0", 1, None, agent="a", outcome="failed", thresholds=HIGHER)]
    grades = pd.DataFrame([*nothing, *of("b", [0.1, 0.95]), *of("c", [0.95, 0.95])])
    assert shown(page(grades, None)) == ["c", "b", "a"]


def test_rates_of_a_part_of_the_split_come_after_those_of_the_whole() -> None:
    grades = pd.DataFrame([*of("few", [0.95, 0.95]), *of("whole", [0.95, 0.1, 0.1]), *of("best", [0.95, 0.95, 0.1])])
    assert shown(page(grades, None, split_sizes={"demo": 3})) == ["best", "whole", "few"]


def test_agents_are_numbered_only_if_their_conditions_are_alike() -> None:
    grades, runs = many(2)
    assert 'class="paper headline ranked"' in page(grades, runs)
    unlike = page(grades, runs.assign(network=[row["agent"] for row in runs.to_dict("records")]))
    assert 'class="paper headline"' in unlike
    assert "Not a ranking" in words(unlike)


def test_published_agents_are_shown_beside_a_whole_split_only() -> None:
    grades, runs = many(2)
    assert "MLE-STAR" not in page(grades, runs, split_sizes={"low": 22, "medium": 38, "high": 15})
    whole = page(grades, runs, split_sizes={"low": 4})
    assert "MLE-STAR" in whole
    rows = [attrs for tag, attrs in Document(whole).elements if tag == "tr" and attrs.get("class") == "reference"]
    assert len(rows) == len(published_agents())
    assert all("hidden" in attrs for attrs in rows), "until they are asked for"


@pytest.mark.parametrize("agent", published_agents(), ids=lambda row: row.label)
def test_a_published_rate_of_all_is_the_mean_over_the_splits(agent: Any) -> None:
    """The figures are facts: three splits of 22, 38 and 15 competitions make up the rate of all 75."""
    sizes = dict(zip(BENCHMARK_SPLITS, (22, 38, 15), strict=True))
    mean = sum(agent.estimates[split].mean * size for split, size in sizes.items()) / 75
    assert math.isclose(agent.estimates["all"].mean, mean, abs_tol=0.006)
    assert all(0 <= one.sem < 0.1 for one in agent.estimates.values())


def test_what_a_human_team_drawn_at_random_reaches() -> None:
    share = medal_places(HIGHER.teams).bronze / HIGHER.teams
    text = words(page(pd.DataFrame([graded("cactus", 1, 0.95)]), RUNS[:1]))
    assert re.search(rf"drawn at random reaches: {100 * share:.0f} %;", text)


def test_labels_at_the_ends_of_lines_do_not_overlap() -> None:
    places = spread([100, 100, 101, 20, 200], low=0, high=210, gap=14)
    ordered = sorted(places)
    assert all(b - a >= 13.9 for a, b in itertools.pairwise(ordered))
    assert min(places) >= 0
    assert max(places) <= 210
