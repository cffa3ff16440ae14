"""Learning curves end at the headline, spend what the requests cost, and figures appear where there are data."""

from __future__ import annotations

import math
from typing import Any

import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from grading.statistics.aggregate import aggregate
from grading.statistics.attempts import percentile_of
from grading.statistics.counting import Counting, cells_of
from grading.statistics.learning import learning
from tests.grading.page.pages import graded, page, ran, snapshots, words

POINTS = {name: [1 - n / 20 for n in range(21)] for name in ("a", "b")}
GRADES = pd.DataFrame([graded("a", 0, 0.8), graded("b", 0, None, outcome="missing")])
RUNS = pd.DataFrame([ran("a", 0, seconds=4 * 3600.0), ran("b", 0, seconds=2 * 3600.0)])
SNAPSHOTS = snapshots(("a", 0, 1, 0.4), ("a", 0, 3, 0.75))


def calls(*rows: tuple[str, int, float, float | None], agent: str = "baseline") -> pd.DataFrame:
    """Requests: (competition, seed, hours since the start, dollars)."""
    start = pd.Timestamp("2026-01-01", tz="UTC")
    return pd.DataFrame(
        [
            {
                "run_group": "g",
                "run_id": f"g-{agent}-{name}-{seed}",
                "competition_id": name,
                "seed": seed,
                "model": "m",
                "started_at": (start + pd.Timedelta(hours=hours)).isoformat(),
                "input_tokens": 1,
                "output_tokens": 1,
                "cost_usd": math.nan if cost is None else cost,
                "latency_seconds": 1.0,
            }
            for name, seed, hours, cost in rows
        ]
    )


def curve(axis: str, column: str, usage: pd.DataFrame | None = None, grades: pd.DataFrame = GRADES) -> Any:
    found = learning(grades, SNAPSHOTS, RUNS, usage, percentiles=POINTS)
    rows = found[(found["axis"] == axis) & (found["split"] == "demo")]
    return rows.set_index("at")[column].to_dict()


def test_over_time_the_newest_submission_counts() -> None:
    assert curve("seconds", "percentile") == pytest.approx({3600: 20, 7200: 20, 14400: 40})
    assert curve("seconds", "any_medal") == pytest.approx({3600: 0, 7200: 0, 14400: 0.5})


def test_over_dollars_a_submission_counts_from_what_it_had_cost() -> None:
    """Three requests: the first submission was made after one, the medal after two, the grade after all."""
    usage = calls(("a", 0, 0.5, 8), ("a", 0, 2, 8), ("a", 0, 3.5, 48))
    assert curve("dollars", "percentile", usage) == pytest.approx({1: 0, 2: 0, 4: 0, 8: 20, 16: 37.5, 32: 37.5, 64: 40})
    assert curve("dollars", "any_medal", usage)[16] == 0.5


@pytest.mark.parametrize(
    "usage", [None, calls(("a", 0, 1, None), ("a", 0, 2, 1)), calls(("a", 0, 1, 0.0))], ids=["none", "unknown", "free"]
)
def test_without_a_cost_there_is_no_curve_over_dollars(usage: pd.DataFrame | None) -> None:
    assert curve("dollars", "any_medal", usage) == {}
    assert curve("seconds", "any_medal", usage) != {}


_scores = st.one_of(st.none(), st.floats(-2, 2))


_runs = st.lists(st.tuples(_scores, st.lists(st.tuples(st.floats(0, 30), _scores), max_size=3)), min_size=4, max_size=4)


@settings(max_examples=40)
@given(
    cells=_runs,
    costs=st.lists(st.tuples(st.sampled_from("ab"), st.integers(0, 1), st.floats(0, 30), st.floats(0, 9)), max_size=6),
    long=st.floats(1, 1e5),
)
def test_curves_end_at_the_headline(cells: Any, costs: Any, long: float) -> None:
    keys = [("a", 0), ("a", 1), ("b", 0), ("b", 1)]
    graded_runs = list(zip(keys, cells, strict=True))
    outcomes: list[Any] = [(key, score, "missing" if score is None else "valid") for key, (score, _) in graded_runs]
    grades = pd.DataFrame([graded(key[0], key[1], score, outcome=outcome) for key, score, outcome in outcomes])
    runs = pd.DataFrame([ran(*key, seconds=long) for key in keys])
    rows = [(*key, at, score) for key, (_, taken) in graded_runs for at, score in taken if score is not None]
    taken = snapshots(*rows) if rows else pd.DataFrame()
    found = learning(grades, taken, runs, calls(*costs) if costs else None, percentiles=POINTS)
    rates = aggregate(grades, runs).rates
    want = rates[(rates["rate"] == "any_medal") & (rates["split"] == "demo")]["mean"].iloc[0]
    (all_cells,) = cells_of(grades, runs, Counting())
    for _, part in found.groupby("axis"):
        assert part["any_medal"].iloc[-1] == pytest.approx(want)
        assert part["percentile"].iloc[-1] == pytest.approx(percentile_of(all_cells, POINTS))
        assert part["percentile"].between(0, 100).all()


def test_the_page_draws_curves_and_attempts() -> None:
    usage = calls(("a", 0, 0.5, 8), ("a", 0, 3.5, 56))
    two = pd.DataFrame([*GRADES.to_dict("records"), graded("a", 1, 0.9), graded("b", 1, 0.1)])
    text = page(two, RUNS, snapshots=SNAPSHOTS, usage=usage, percentiles=POINTS)
    for title in ("Mean human percentile over time", "Any medal over dollars per run", "Any medal in k attempts"):
        assert title in words(text), title
    assert "Learning and scaling" not in words(page(GRADES.head(1), None))


def test_an_agent_with_different_resources_has_a_line() -> None:
    grades, runs = [], []
    for group, hours, gpus, score in (("day", 24, 1, 0.6), ("week", 100, 1, 0.8), ("two", 100, 2, 0.95)):
        grades.append(graded("a", 0, score, group=group))
        runs.append(ran("a", 0, group=group, time_limit_seconds=3600.0 * hours, gpus=gpus))
    text = page(pd.DataFrame(grades), pd.DataFrame(runs))
    assert "Any medal by resources" in words(text)
    assert "0.0 % at 24 h, 1 GPU, 100.0 % at 100 h, 1 GPU, 100.0 % at 100 h, 2 GPUs" in text
    assert "Any medal by resources" not in words(page(pd.DataFrame(grades[:1]), pd.DataFrame(runs[:1])))
