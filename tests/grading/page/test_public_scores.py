"""A group with feedback beside one without: it is marked wherever it stands, and has a section of its own."""

import re
from typing import Any

import pandas as pd
import pytest

from grading.page.text import medal_table
from tests.grading.page.pages import GRADES, RUNS, graded, many, markdown, page, ran, words
from tests.grading.statistics.test_public_scores import FILES, POINTS

WARNING = "Agents marked “feedback” were told scores on a part of the test rows, and are graded on the rest."


@pytest.fixture
def both() -> tuple[pd.DataFrame, pd.DataFrame]:
    """agent-0 without feedback, agent-1 with it."""
    grades, runs = many(2, competitions=6)
    told = runs["agent"] == "agent-1"
    runs = runs.assign(feedback=told.map({True: 0.3, False: None}), feedback_calls_per_day=told.map({True: 5.0}))
    return grades.assign(feedback=runs["feedback"]), runs


def test_it_is_marked_in_every_table_and_chart(both: tuple[pd.DataFrame, pd.DataFrame]) -> None:
    html = page(*both)
    text = words(html)
    assert WARNING in text.split("95 % interval for other runs")[0]
    assert "Not a ranking. The agents were run under unlike conditions: feedback (agent-" in text
    assert "agent-1 · feedback: 30 %" in text
    assert "Run with feedback (agent-1 · feedback): agents were told scores on 30 % of the test rows, 5 a day" in text
    assert "Feedback 30 %" in text or "30 % no" in text or "no 30 %" in text, "among the conditions"
    shown = re.sub(r"agent-1( ·| \\u00b7|…) ?f?eedback", "", html)
    rest = [line for line in shown.splitlines() if re.search(r"\bagent-1\b", line)]
    assert len(rest) == 1, "only the agent's own name among the conditions"
    assert '<th scope="row"><bdi>Agent</bdi></th>' in rest[0]


def test_its_published_row_states_the_deviation(both: tuple[pd.DataFrame, pd.DataFrame]) -> None:
    html = page(*both)
    pasted = html.split('<pre class="paste">')[1].split("</pre>")[0]
    assert "agent\\-1 · feedback [^1]" in pasted
    assert "conditions differ in feedback" in pasted
    deviation = "with feedback: agents were told scores on 30 % of the test rows, 5 a day, and are graded on the rest"
    assert words(html).count(deviation) == 1


def test_the_summary_and_a_terminal_mark_it(both: tuple[pd.DataFrame, pd.DataFrame]) -> None:
    text = markdown(*both).replace("\\", "")
    assert "| agent-1 (group-1, v1, feedback) |" in text
    assert "| agent-0 (group-0, v1) |" in text
    assert "agent-1 · feedback, seed 0" in medal_table(*both).columns
    assert "agent-1 · feedback, seed 0" in medal_table(both[0]).columns, "the grades say it, too"


def test_without_it_nothing_is_said() -> None:
    text = words(page(GRADES.assign(feedback=None), RUNS.assign(feedback=None, feedback_calls_per_day=None)))
    assert "eedback" not in text
    assert "Public and private scores" not in text


def test_resources_of_an_agent_are_no_curve_over_other_test_sets(both: tuple[pd.DataFrame, pd.DataFrame]) -> None:
    grades, runs = (table.assign(agent="same") for table in both)
    limits = {"group-0": 600.0, "group-1": 7200.0}
    plain = runs.assign(time_limit_seconds=runs["run_group"].map(limits))
    assert "by resources" not in page(grades, plain)
    assert "by resources" in page(grades.drop(columns="feedback"), plain.drop(columns="feedback"))


def section(own: pd.DataFrame | None = None, **more: Any) -> str:
    grades = pd.DataFrame([{**graded("cactus", 1, 0.7), "feedback": 0.3, "public_score": 0.8, **more}])
    runs = pd.DataFrame([ran("cactus", 1, feedback=0.3, feedback_calls_per_day=5)])
    files = FILES.assign(agent="baseline", at_seconds=60.0)
    html = page(grades, runs, public_scores=files, percentiles=POINTS, own=own)
    return html.split('<section id="public-scores"')[1].split("</section>")[0]


def test_public_scores_stand_beside_private_ones() -> None:
    text = words(section())
    assert "baseline · feedback 1 of 1 4 +10.0 – 5.0 25.0 0" in text
    assert "cactus baseline · feedback 1 2 0.8 0.8 0.7 0.1 70 counts" in text
    assert "1 3 0.9 0.9 0.65 0.25 65 chosen" in text
    assert "4 files with a public score" in text
    assert "Gap in points" in text
    assert "Told Private Public better by Percentile Choice" in text, "in units of the metric, so it is not called gap"
    assert section().count('class="line') == 2, "public and private, over the number of files"


def test_own_validation_scores_stand_beside_them() -> None:
    own = {"run_group": "g", "run_id": "g-baseline-cactus-1", "competition_id": "cactus", "seed": 1}
    own |= {"agent": "baseline", "at_seconds": 30.0, "own_score": 0.95, "submitted": True, "name": None}
    assert "4 +10.0 +25.0 5.0" in words(section(pd.DataFrame([own])))


def test_a_run_without_a_private_score_has_no_gap() -> None:
    missing = {**graded("cactus", 1, None, outcome="invalid"), "feedback": 0.3}
    assert "1 of 1 4 – – 75.0 25.0 1" in words(section(**missing))
