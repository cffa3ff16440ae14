"""Own validation against test: candidates are paired with their snapshots, gap and regret have the right sign."""

from __future__ import annotations

import re
from typing import Any

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from grading.page import Results, render_page
from grading.statistics.generalisation import by_run, generalisation, pairs, percentiles_over_time
from tests.grading.page.pages import LOWER, graded, ran

# From 1.0 at the top to 0.0 at the bottom, so that a score of 0.37 beats 37 % of the teams.
POINTS = [1 - n / 20 for n in range(21)]
DOWN = [n / 20 for n in range(21)]


def snapshot(at: float, score: float | None, **more: Any) -> dict[str, Any]:
    run = {"run_group": "g", "run_id": "g-baseline-cactus-0", "competition_id": "cactus", "edition": "v1"}
    medal = score is not None and score >= 0.7
    return {**run, "at_seconds": at, "score": score, "valid_submission": score is not None, "any_medal": medal, **more}


def candidate(at: float, score: float, submitted: bool = True, **more: Any) -> dict[str, Any]:
    run = {"run_group": "g", "run_id": "g-baseline-cactus-0", "competition_id": "cactus", "seed": 0}
    return {**run, "at_seconds": at, "own_score": score, "submitted": submitted, **more}


GRADES = pd.DataFrame([graded("cactus", 0, 0.5)])
SNAPSHOTS = pd.DataFrame([snapshot(10, 0.4), snapshot(99, 0.8), snapshot(200, 0.5)])
OWN = pd.DataFrame([candidate(12, 0.6), candidate(50, 0.1, False), candidate(100, 0.7), candidate(190, 0.9)])


def test_candidates_are_paired_with_the_snapshots_of_their_time() -> None:
    found = pairs(GRADES, SNAPSHOTS, OWN)
    assert found[["own_score", "test_score", "final"]].to_numpy().tolist() == [
        [0.6, 0.4, False],
        [0.7, 0.8, False],
        [0.9, 0.5, True],
    ]


def test_gap_and_regret() -> None:
    (row,) = by_run(GRADES, SNAPSHOTS, OWN, {"cactus": POINTS}).to_dict("records")
    assert (row["gap"], row["regret"]) == (pytest.approx(0.4), pytest.approx(0.3))
    assert (row["percentile_gap"], row["percentile_regret"]) == (pytest.approx(40), pytest.approx(30))
    assert row["medal_lost"]
    assert row["candidates"] == 4


def test_lower_is_better() -> None:
    grades = pd.DataFrame([graded("cactus", 0, 0.5, thresholds=LOWER)])
    (row,) = by_run(grades, SNAPSHOTS, pd.DataFrame([candidate(190, 0.3)]), {"cactus": DOWN}).to_dict("records")
    assert (row["gap"], row["regret"]) == (pytest.approx(0.2), pytest.approx(0.1)), "0.3 is better than 0.5, and 0.4"
    assert (row["percentile_gap"], row["percentile_regret"]) == (pytest.approx(20), pytest.approx(10))


def test_runs_that_cannot_be_compared_are_left_out() -> None:
    none = pd.DataFrame()
    assert by_run(GRADES, SNAPSHOTS, none).empty
    assert by_run(GRADES, none, pd.DataFrame([candidate(1, 0.6)]))["regret"].tolist() == [0]
    failed = pd.DataFrame([graded("cactus", 0, None, outcome="failed")])
    assert by_run(failed, SNAPSHOTS, OWN).empty
    assert by_run(pd.DataFrame([graded("cactus", 0, None, outcome="invalid")]), none, OWN).empty
    assert by_run(GRADES, SNAPSHOTS, pd.DataFrame([candidate(1, 0.6, False)])).empty


@pytest.mark.parametrize("outcome", ["invalid", "missing"])
def test_a_final_choice_without_a_score_is_regretted_most(outcome: Any) -> None:
    """If it were left out, the worst choices would not count."""
    grades = pd.DataFrame([graded("cactus", 0, None, outcome=outcome)])
    found = by_run(grades, SNAPSHOTS, OWN, {"cactus": POINTS})
    (row,) = found.to_dict("records")
    assert row["percentile_regret"] == pytest.approx(80)
    assert row["medal_lost"]
    assert pd.isna(row["regret"])
    (total,) = generalisation(grades, found).to_dict("records")
    assert (total["regret"], total["medals_lost"], total["reporting"]) == (pytest.approx(80), 1, 1)
    assert pd.isna(total["gap"])


def test_totals_average_competitions() -> None:
    rows = [graded("cactus", 0, 0.5), graded("cactus", 1, 0.5), graded("roses", 0, 0.2), graded("lilies", 0, 0.9)]
    own = [candidate(9, 0.6), candidate(9, 0.8, run_id="g-baseline-cactus-1", seed=1)]
    own += [candidate(9, 0.3, run_id="g-baseline-roses-0", competition_id="roses")]
    points = {"cactus": POINTS, "roses": POINTS, "lilies": POINTS}
    found = by_run(pd.DataFrame(rows), pd.DataFrame(), pd.DataFrame(own), points)
    (row,) = generalisation(pd.DataFrame(rows), found).to_dict("records")
    assert (row["runs"], row["reporting"], row["candidates"]) == (4, 3, 3)
    assert row["gap"] == pytest.approx(((10 + 30) / 2 + 10) / 2)


def test_curves_hold_until_the_next_candidate() -> None:
    found = percentiles_over_time(pairs(GRADES, SNAPSHOTS, OWN), {"cactus": POINTS}, [5, 60, 120, 240])
    assert found["own"].tolist() == pytest.approx([0, 60, 70, 90])
    assert found["test"].tolist() == pytest.approx([0, 40, 80, 50])


@given(
    own=st.lists(st.tuples(st.floats(0, 1e6), st.floats(-1e300, 1e300), st.booleans()), max_size=6),
    taken=st.lists(st.tuples(st.floats(0, 1e6), st.one_of(st.none(), st.floats(-1e300, 1e300))), max_size=6),
    final=st.floats(-1e300, 1e300),
)
def test_regret_is_never_negative(own: Any, taken: Any, final: float) -> None:
    grades = pd.DataFrame([graded("cactus", 0, final)])
    rows = by_run(
        grades,
        pd.DataFrame([snapshot(*each) for each in taken]),
        pd.DataFrame([candidate(*each) for each in own]),
        {"cactus": POINTS},
    )
    assert (rows["regret"] >= 0).all()
    assert (rows["percentile_regret"] >= 0).all()
    assert rows["percentile_gap"].between(-100, 100).all()


def test_the_page_draws_both_over_time() -> None:
    results = Results(GRADES, pd.DataFrame([ran("cactus", 0)]), SNAPSHOTS, own=OWN, percentiles={"cactus": POINTS})
    page = render_page(results)
    assert "Own validation against test" in page
    assert re.search(r"<title>baseline, own validation: .*90\.0 % at \S+ min</title>", page)
    assert re.search(r"<title>baseline: .*50\.0 % at \S+ min</title>", page)
    assert ">+40.0<" in page
    assert ">30.0<" in page
    assert "Own validation against test" not in render_page(Results(GRADES))
