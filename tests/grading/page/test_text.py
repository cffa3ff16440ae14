"""The Markdown summary, the terminal's table, and how numbers are written."""

import math

import pandas as pd
import pytest

from grading.page import medal_table
from grading.page.format import duration, number
from tests.grading.page.pages import GRADES, RUNS, THRESHOLDS, graded, markdown, page


def test_the_markdown_summary_has_rates_matrix_and_failures() -> None:
    text = markdown(GRADES, RUNS, thresholds=THRESHOLDS, title="Results")
    assert text.startswith("# Results\n")
    assert "| 75.0 [19.4, 99.4] |" in text
    assert "| cactus | G | B |\n| diabetes | S | × |" in text
    assert "- diabetes, baseline, seed 2: time limit reached, invalid submission: the column id is missing" in text
    assert "trained models instead of human teams: diabetes" in text


def test_markdown_from_agents_stays_text() -> None:
    message = "a | b\n# head [link](javascript:x) <b>bold</b> `code`"
    text = markdown(pd.DataFrame([graded("cactus", 1, None, outcome="invalid", message=message)]))
    assert r"a \| b \# head \[link\]\(javascript:x\) &lt;b&gt;bold&lt;/b&gt; \`code\`" in text


def test_the_terminal_table_has_text_and_a_kind_to_style_by() -> None:
    table = medal_table(GRADES, RUNS, thresholds=THRESHOLDS)
    assert table.columns == ["competition", "split", "seed 1", "seed 2"]
    (cactus, split, cells), (_, _, others) = table.rows
    assert (cactus, split) == ("cactus", "demo")
    assert [(cell.text, cell.kind) for cell in cells] == [("0.95 gold", "gold"), ("0.75 bronze", "bronze")]
    assert [(cell.text, cell.kind) for cell in others] == [("0.15 silver", "silver"), ("invalid submission", "invalid")]
    assert table.model_leaderboards == ["diabetes"]


def test_the_terminal_table_has_a_dash_where_a_seed_did_not_run() -> None:
    table = medal_table(GRADES.iloc[[0, 1, 2]])
    assert (table.rows[1][2][1].text, table.rows[1][2][1].kind) == ("–", None)


@pytest.mark.parametrize(
    ("value", "text"),
    [(0.123456789, "0.12346"), (3971366.0, "3,971,366"), (1.0, "1"), (-0.5, "−0.5"), (None, "–"), (math.nan, "NaN")],
)
def test_numbers_are_short(value: float | None, text: str) -> None:
    assert number(value) == text


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0, "0 s"),
        (0.42, "0.4 s"),
        (9.97, "10 s"),
        (59.6, "1 min"),
        (3599.9, "1 h"),
        (11100, "3 h 5 min"),
        (86400, "24 h"),
        (None, "–"),
    ],
)
def test_durations_have_two_units(seconds: float | None, text: str) -> None:
    assert duration(seconds) == text


def test_leaks_that_the_edition_leaves_open_are_named() -> None:
    leaks = {("v1", "cactus"): ["labels"], ("v2", "cactus"): ["unseen"], ("v1", "diabetes"): []}
    assert "| v1 | cactus | labels |" in markdown(GRADES, leaks=leaks)
    for text in (markdown(GRADES, leaks=leaks), page(leaks=leaks)):
        assert "Leaks left open" in text
        assert "unseen" not in text
    assert "Leaks left open" not in markdown(GRADES) + page()


def test_competitions_that_compare_less_well_with_people_are_named() -> None:
    stated = {("v1", "cactus"): ("roughly", "Other <pages>."), ("v1", "diabetes"): ("fully", "The same.")}
    assert "| v1 | cactus | roughly |" in markdown(GRADES, comparability=stated)
    for text in (markdown(GRADES, comparability=stated), page(comparability=stated)):
        assert "Comparison with people" in text
        assert "The same." not in text
        assert "<pages>" not in text
    assert "Comparison with people" not in markdown(GRADES) + page()
