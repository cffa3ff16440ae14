"""The page tells all that the tables hold."""

import dataclasses
import math
import re
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from markupsafe import escape

from grading.page import medal_table
from grading.page.format import number
from tests.grading.page.pages import (
    GRADES,
    HIGHER,
    MOMENT,
    RUNS,
    SNAPSHOTS,
    THRESHOLDS,
    USAGE,
    calls,
    graded,
    markdown,
    page,
    ran,
    snapshots,
    words,
)


def test_the_headline_is_the_rate_of_any_medal_with_its_intervals() -> None:
    # seed 1: gold and silver; seed 2: bronze and an invalid submission: 100 % and 50 %
    text = words(page())
    assert re.search(r"2 competitions × 2 seeds 75\.0 ?19–99", text), "the first figure"
    assert "75.0 [19.4, 99.4]" in text, "from submission to medal"


def test_the_first_figure_has_a_row_a_split_of_one_agent_and_a_column_a_split_of_several() -> None:
    splits = [("a", "low"), ("b", "high")]
    rows = [graded(c, s, 0.95, complexity=x, agent=a) for a in ("x", "y") for c, x in splits for s in (1, 2)]
    both = words(page(pd.DataFrame(rows), None))
    assert re.search(r"Agent \d+ Low High All", both)
    one = words(page(pd.DataFrame(rows[:4]), None))
    assert re.search(r"Any medal Low ?1 competition × 2 seeds .* High ?1 competition .* All ?2 comp", one)


def test_a_partly_run_split_says_so() -> None:
    grades = pd.DataFrame([graded(c, 1, 0.95, complexity=x) for c, x in [("a", "low"), ("b", "high")]])
    text = words(page(grades, None, split_sizes={"low": 22, "medium": 38, "high": 15}))
    assert "1 of 22 competitions × 1 seed" in text
    assert "2 of 75 competitions × 1 seed" in text


def test_the_competitions_of_a_rate_are_named_where_they_are_not_all() -> None:
    grades = pd.DataFrame([graded("a", 1, 0.95, complexity="low")])
    reasons = {"b": ("low", "it is closed"), "c": ("high", "it is closed"), "a": ("low", "it is closed")}
    told: dict[str, Any] = {"split_sizes": {"low": 3, "medium": 0, "high": 9}, "unavailable": reasons}
    text = "low: over 1 of 3 competitions, without b: it is closed"
    html = page(grades, None, **told)
    assert text in words(html)
    assert f"[^2]: Not all competitions: {text}." in html
    assert f"- baseline, {text}" in markdown(grades, None, **told)
    assert "over 1 of" not in words(page(grades, None, split_sizes={"low": 1}))


def test_one_split_alone_is_not_called_all() -> None:
    text = words(page(pd.DataFrame([graded("a", 1, 0.95, complexity="low")]), None))
    assert " Low " in text
    assert " All " not in text.split("All submissions")[0]


def test_incomplete_seeds_are_stated() -> None:
    grades = GRADES[:-1]  # nothing graded for diabetes, seed 2
    assert "1 run without a grade: each competition counts with its graded runs" in words(page(grades))
    assert "Ungraded submissions diabetes, baseline, seed 2: no grade" in words(page(grades))
    assert "Ungraded submissions" not in words(page())
    summary = markdown(grades, RUNS)
    assert "1 run without a grade" in summary
    assert "- diabetes, baseline, seed 2: no grade" in summary
    assert "counted as failures" in words(page(grades, incomplete="fail"))


def test_the_medal_matrix_has_a_cell_a_competition_and_seed() -> None:
    matrix = page().split('<section id="matrix">')[1].split("</section>")[0]
    body = matrix.split("<tbody>")[1].split("</tbody>")[0]
    found = re.findall(r'class="chip (\w+)" href=#(r\d+)', body)
    assert [kind for kind, _ in found] == ["silver", "invalid", "gold", "bronze"], "seeds differ most in the first one"
    rows = page().split('id="all"')[1]
    assert "diabetes" in rows.split(f"<tr id={found[0][1]}>")[1].split("</tr>")[0].split("<tr")[0]


def test_every_score_is_a_mark_on_the_common_scale_and_on_that_of_its_competition() -> None:
    html = page()
    section = html.split('<section id="competitions">')[1].split("</section>")[0]
    assert section.count('<use href="#m0" x="') == 2 * 3
    assert "baseline, seed 1: 0.95, gold medal" in html


def test_thresholds_of_trained_models_are_labelled() -> None:
    text = words(page())
    assert "diabetes not human" in text
    assert "cactus not human" not in text
    assert "The leaderboard of diabetes consists of trained models" in text
    assert "40 trained models" in text
    assert "1,221 teams" in text
    assert "Not against humans" not in words(page(GRADES[GRADES["competition_id"] == "cactus"], None))


def test_failures_are_told_with_their_cause() -> None:
    text = words(page()).split("Failures")[-1]
    assert "time limit reached" in text
    assert "the column id is missing" in text


def test_a_long_traceback_shows_its_last_line_first() -> None:
    trace = "Traceback (most recent call last):\n" + '  File "grade.py", line 1\n' * 30 + "KeyError: 'label'"
    grades = pd.DataFrame([graded("cactus", 1, None, outcome="failed", message=trace)])
    shown = escape("KeyError: 'label'")
    assert f"<summary><bdi>{shown}</bdi></summary>" in page(grades, None)


def test_a_run_that_nobody_graded_is_shown() -> None:
    runs = pd.concat([RUNS, pd.DataFrame([ran("cactus", 3, status="crashed")])])
    text = words(page(runs=runs))
    assert "agent crashed, not graded" in text
    assert "2 runs without a grade" in text


def test_a_competition_of_which_no_run_was_graded_stands_in_its_split() -> None:
    runs = pd.concat([RUNS, pd.DataFrame([ran("whales", s) for s in (1, 2)])])
    facts = {"whales": {"complexity": "demo", "category": "Audio"}}
    text = words(page(runs=runs, facts=facts, incomplete="fail"))
    assert "3 competitions × 2 seeds, 2 ungraded 50.0" in text
    assert "2 runs without a grade: counted as failures" in text
    assert "whales demo ??" in text.split("Medal matrix")[-1]


def test_without_failures_it_says_so() -> None:
    html = page(GRADES[:3], RUNS[:3])
    assert "Every run completed and made a valid submission" in words(html)
    assert 'id="failures"' not in html, "no section without content"
    assert "Every run completed" not in words(page())


def test_run_conditions_are_stated() -> None:
    text = words(page(conditions={"g": {"Network": "gateway only"}})).split("Run conditions")[1]
    for stated in ("process", "v1", "10 min", "0123abcd", "gateway only", "2026-01-01 00:10 UTC"):
        assert stated in text


def test_a_condition_that_holds_or_not_is_said_in_words() -> None:
    assert "Obfuscated descriptions yes" in words(page(runs=RUNS.assign(obfuscated=True)))
    assert "Obfuscated descriptions no" in words(page(runs=RUNS.assign(obfuscated=False)))
    assert "Scorer" not in words(page(runs=RUNS.assign(scorer=None)))
    assert "Scorer yes" in words(page(runs=RUNS.assign(scorer=True)))
    mixed = RUNS.assign(scorer=pd.Series([True, *[None] * (len(RUNS) - 1)], RUNS.index, object))
    assert "Scorer no, yes" in words(page(runs=mixed)), "null means that there was none"
    head = "Run with the scorer: agents could compute the official metric on their own held-out data."
    assert head in words(page(runs=mixed)).split("Any medal")[0]
    assert head in markdown(GRADES, mixed).replace("\\", "")
    assert 'id="t-scorer"' in page(runs=mixed)
    assert "Run with" not in words(page()).split("Any medal")[0]


def test_durations_are_stated() -> None:
    assert "12 min 34 s" in words(page())
    assert 'id="durations"' not in page(runs=None)


def test_human_percentiles_are_shown_where_known() -> None:
    points = [1 - step / 20 for step in range(21)]
    text = words(page(percentiles={"cactus": points}))
    assert "human percentile 95" in text or "95" in text.split("All submissions")[-1]
    assert re.search(r"Any medal Other competitions Human percentile baseline Demo .* 85\.0 ", text), "of 95 and 75"
    assert "Human percentile baseline" not in words(page())


def test_a_curve_that_is_always_zero_is_not_drawn() -> None:
    assert "Any medal over time <span" in page(snapshots=SNAPSHOTS)
    none = SNAPSHOTS.assign(**dict.fromkeys([name for name in map(str, SNAPSHOTS) if name.endswith("_medal")], False))
    losers = GRADES.assign(**dict.fromkeys([name for name in map(str, GRADES) if name.endswith("_medal")], False))
    html = page(losers, snapshots=none)
    assert "Any medal over time <span" not in html
    assert "Any medal in k attempts" not in html


def test_medal_rates_over_time_are_drawn_and_told() -> None:
    html = page(snapshots=SNAPSHOTS)
    text = words(html).split("Any medal over time in numbers")[-1]
    assert "Agent Split 1 h 2 h 3 h" in text
    assert "baseline Demo 0.0 25.0 75.0" in text
    assert html.count('<polyline class="line l0"') == 2, "lines of rates and of pass@k"
    paths = re.findall(r'<path class="line l0" data-line="baseline" d="([^"]+)"', html)
    assert [path.count("M") for path in paths] == [2, 2], "a line of scores for each run of both competitions"
    assert 'id="time"' not in page()


def test_cost_is_told_by_run_and_by_medal() -> None:
    text = words(page(usage=USAGE)).split("Language model calls")[1]
    assert "2 of 4 3 3,000,000 15,000 $6.00 $3.00 1,507,500 $2.00 1,005,000" in text
    assert "cactus g 1 model-a 2 2,000,000 10,000 $2.00" in text
    assert 'id="cost"' not in page()


def test_medals_for_money_and_time_are_told_with_their_intervals_and_the_pareto_front() -> None:
    rows = [graded("cactus", s, score, agent=agent) for agent, score in (("a", 0.95), ("b", 0.6)) for s in (1, 2)]
    runs = [ran("cactus", s, agent=agent) for agent in ("a", "b") for s in (1, 2)]
    spent = pd.concat([calls(("cactus", 1, 2.0), ("cactus", 2, 2.0), agent=agent) for agent in ("a", "b")])
    section = page(pd.DataFrame(rows), pd.DataFrame(runs), usage=spent).split('<section id="efficiency"')[1]
    text = words(section.split("</section>")[0])
    assert re.search(r"a 100\.0 \$2\.00 0\.5 ?0\.0606 to 1\.81 60 ?7\.27 to 217 yes", text)
    assert re.search(r"b 0\.0 \$2\.00 0 ?0 to \S+ 0 ?0 to \S+ –", text)


def test_all_does_not_repeat_the_only_split_that_was_run() -> None:
    grades = pd.DataFrame([graded("cactus", s, 0.95, complexity="low") for s in (1, 2)])
    text = words(page(grades, None, snapshots=SNAPSHOTS))
    assert "Any medal over time low" in text
    assert not re.search(r"baseline All \d", text)


def test_several_attempts_are_told_as_pass_at_k() -> None:
    text = words(page()).split("Several attempts")[1]
    assert "k = 1 k = 2" in text
    assert "75.0 [13, 100] 100.0 [16, 100]" in text
    assert "mean 0.85, best of 2: 0.95" in words(page())
    assert "Several attempts" not in words(page(GRADES.iloc[[0, 2]], None))


def test_the_summary_in_markdown_has_the_same() -> None:
    text = markdown(GRADES, RUNS, thresholds=THRESHOLDS, snapshots=SNAPSHOTS, usage=USAGE)
    assert "| baseline | demo | 0.0 | 25.0 | 75.0 |" in text
    assert "| baseline | 2 | 3,000,000 | 15,000 | $6.00 | $3.00 | $2.00 |" in text
    assert r"| baseline | demo | 75.0 \[13, 100\] | 100.0 \[16, 100\] |" in text


def test_what_backends_record_of_a_run_is_a_condition() -> None:
    machine = {"hardware": "Linux, 64 cores", "package_version": "1.0.0rc1", "git_commit": "commit 0a1b2c"}
    runs = RUNS.assign(network="gateway only", image_digest="sha256:0123", cpus=8, memory_bytes=64 << 30, **machine)
    text = words(page(runs=runs)).split("Run conditions")[1]
    for stated in (
        "Network gateway only",
        "Image digest sha256:0123",
        "Processors 8",
        "Memory limit 64 GiB",
        "Run on Linux, 64 cores",
        "Run with mlebench-pipeline 1.0.0rc1",
        "Source of the runs commit 0a1b2c",
    ):
        assert stated in text


@pytest.mark.parametrize("score", [math.nan, math.inf, -math.inf])
@pytest.mark.parametrize("competition", ["cactus", "diabetes"])
def test_scores_that_are_no_finite_number_do_not_break_the_page(score: float, competition: str) -> None:
    assert number(score) in words(page(pd.DataFrame([graded(competition, 1, score)]), None))


def test_a_group_without_grades_still_has_a_page() -> None:
    empty = GRADES.iloc[:0]
    assert "0 competitions" in words(page(empty, None))
    assert "0 competitions" in words(page(empty, RUNS.iloc[:0]))
    assert markdown(empty).startswith("# ")
    assert medal_table(empty).rows == []


def test_only_ungraded_runs_still_have_a_page() -> None:
    assert "not graded" in words(page(GRADES.iloc[:0]))


def test_tables_read_back_from_parquet_give_the_same_page(tmp_path: Path) -> None:
    GRADES.to_parquet(tmp_path / "grades.parquet")
    RUNS.to_parquet(tmp_path / "runs.parquet")
    again = page(
        pd.read_parquet(tmp_path / "grades.parquet"), pd.read_parquet(tmp_path / "runs.parquet"), generated_at=MOMENT
    )
    assert again == page(generated_at=MOMENT)


def test_numbers_of_things_agree_with_their_nouns() -> None:
    html = page(GRADES.iloc[:1], RUNS.iloc[:1], snapshots=SNAPSHOTS, usage=USAGE, leaks={("v1", "cactus"): ["x"]})
    found = re.findall(r"(?<![\d.,]) 1 [a-z]*s\b", words(html))
    assert not [each for each in found if each not in (" 1 is", " 1 cactus")], found
    assert "1 of 1 competition" in words(html)


def test_scores_have_five_decimals_whatever_their_size() -> None:
    limits = dataclasses.replace(HIGHER, gold=1234567.12345)
    html = page(pd.DataFrame([graded("cactus", 1, 123456.78912)]), None, thresholds={"cactus": limits})
    assert "123,456.78912" in words(html)
    assert "1,234,567.12345" in words(html)


@pytest.mark.parametrize("score", [1e200, -1e200, math.inf, -math.inf])
def test_a_score_beyond_measure_costs_no_page(score: float) -> None:
    rows = [graded("cactus", 1, score), graded("diabetes", 1, score), graded("cactus", 2, 0.6)]
    times = snapshots(("cactus", 1, 1, score), ("cactus", 2, 1, 0.6))
    html = page(pd.DataFrame(rows), None, snapshots=times)
    assert len(html) < 200_000
    assert markdown(pd.DataFrame(rows), snapshots=times)
