"""Learning curves end at the headline, spend what the requests cost, and figures appear where there are data."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from grading.statistics.aggregate import aggregate
from grading.statistics.attempts import percentile_of
from grading.statistics.counting import Counting, cells_of
from grading.statistics.learning import learning, spending
from grading.statistics.validations import validation_counts
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
    found = learning(grades, SNAPSHOTS, RUNS, spending(RUNS, usage), percentiles=POINTS)
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
    found = learning(grades, taken, runs, spending(runs, calls(*costs) if costs else None), percentiles=POINTS)
    rates = aggregate(grades, runs).rates
    want = rates[(rates["rate"] == "any_medal") & (rates["split"] == "demo")].iloc[0]
    (all_cells,) = cells_of(grades, runs, Counting())
    for _, part in found.groupby("axis"):
        last = part.iloc[-1]
        assert list(last[["any_medal", "any_medal_low", "any_medal_high"]]) == pytest.approx(
            list(want[["mean", "ci_low", "ci_high"]])
        )
        assert part["percentile"].iloc[-1] == pytest.approx(percentile_of(all_cells, POINTS))
        for name in ("percentile", "any_medal"):
            assert (part[f"{name}_low"].ge(0) & part[f"{name}_low"].le(part[name] + 1e-9)).all()
            assert (part[f"{name}_high"].ge(part[name] - 1e-9) & part[f"{name}_high"].le(100)).all()


def test_bands_are_those_of_the_runs_at_the_moment() -> None:
    """Percentiles of 20 competitions with three seeds after an hour and at the end, by numpy and scipy."""
    draw = np.random.default_rng(2)
    names = [f"c{n}" for n in range(20)]
    early, final = (np.round(draw.uniform(0.2, 0.95, (20, 1)) + draw.normal(0, 0.05, (20, 3)), 5) for _ in range(2))
    cells = [(name, seed) for name in names for seed in range(3)]
    at = {name: n for n, name in enumerate(names)}
    grades = pd.DataFrame([graded(name, seed, final[at[name], seed]) for name, seed in cells])
    runs = pd.DataFrame([ran(name, seed, seconds=7200.0) for name, seed in cells])
    taken = snapshots(*((name, seed, 0.5, early[at[name], seed]) for name, seed in cells))
    points = dict.fromkeys(names, POINTS["a"])
    found = learning(grades, taken, runs, percentiles=points).query("split == 'demo'").set_index("at")
    for moment, scores in ((3600.0, early), (7200.0, final)):
        shares = np.clip(scores, 0, 1)
        error = stats.t.ppf(0.975, 40) * np.sqrt((shares.var(axis=1, ddof=1) / 3).sum()) / 20
        row = found.loc[moment]
        assert row["percentile"] == pytest.approx(100 * shares.mean())
        assert row["percentile"] - row["percentile_low"] == pytest.approx(100 * error, rel=0.1)
        assert row["percentile_high"] - row["percentile"] == pytest.approx(100 * error, rel=0.1)


def test_the_page_draws_curves_and_attempts() -> None:
    usage = calls(("a", 0, 0.5, 8), ("a", 0, 3.5, 56))
    two = pd.DataFrame([*GRADES.to_dict("records"), graded("a", 1, 0.9), graded("b", 1, 0.1)])
    text = page(two, RUNS, snapshots=SNAPSHOTS, usage=usage, percentiles=POINTS)
    for title in ("Mean human percentile over time", "Any medal over dollars per run", "Any medal in k attempts"):
        assert title in words(text), title
    assert "Learning and scaling" not in words(page(GRADES.head(1), None))


CHECKED = pd.DataFrame(
    [
        {"run_group": "g", "run_id": "g-baseline-a-0", "at_seconds": 3600.0 * hours, "verdict": "valid"}
        for hours in (0.5, 0.75, 2.5, 3.9)
    ]
)


def test_validations_are_counted_over_time_and_over_dollars() -> None:
    """Two competitions: one run had four submissions checked, the other none."""
    usage = calls(("a", 0, 0.6, 8), ("a", 0, 2, 8), ("a", 0, 3.5, 48))
    found = validation_counts(GRADES, CHECKED, RUNS, spending(RUNS, usage))
    demo = found[found["split"] == "demo"]
    by_axis = {axis: dict(zip(part["at"], part["validations"], strict=True)) for axis, part in demo.groupby("axis")}
    assert by_axis["seconds"] == {3600: 1.0, 7200: 1.0, 14400: 2.0}
    assert by_axis["dollars"] == {1: 0.5, 2: 0.5, 4: 0.5, 8: 1.0, 16: 1.5, 32: 1.5, 64: 2.0}
    assert set(validation_counts(GRADES, CHECKED, RUNS)["axis"]) == {"seconds"}, "no curve without a cost"
    assert demo["ci_low"].isna().all(), "one run a competition says nothing of the variance"
    assert validation_counts(GRADES, CHECKED.iloc[:0], RUNS, spending(RUNS, usage)).empty
    text = page(GRADES, RUNS, validations=CHECKED, usage=usage)
    assert "Validations per run over time" in words(text)
    assert "baseline: 1 at 1 h, 1 at 2 h, 2 at 4 h" in text
    assert "Validations per run over dollars" in words(text)


def test_an_agent_with_different_resources_has_a_line() -> None:
    grades, runs = [], []
    for group, hours, gpus, score in (("day", 24, 1, 0.6), ("week", 100, 1, 0.8), ("two", 100, 2, 0.95)):
        grades.append(graded("a", 0, score, group=group))
        runs.append(ran("a", 0, group=group, time_limit_seconds=3600.0 * hours, gpus=gpus))
    text = page(pd.DataFrame(grades), pd.DataFrame(runs))
    assert "Any medal by resources" in words(text)
    assert "0.0 % at 24 h, 1 GPU, 100.0 % at 100 h, 1 GPU, 100.0 % at 100 h, 2 GPUs" in text
    assert "Any medal by resources" not in words(page(pd.DataFrame(grades[:1]), pd.DataFrame(runs[:1])))
