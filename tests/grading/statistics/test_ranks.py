"""Ranks and P(A > B) against the enumeration of all resamples, normal theory, and what must hold for any tables."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from grading.statistics.ranks import Rank, ranking
from grading.statistics.resampling import Vary

NAN: Any = math.nan
KINDS: tuple[Vary, ...] = ("runs", "competitions")


def test_the_probability_over_runs_is_that_of_all_resamples() -> None:
    """Of two seeds one is drawn in each competition: 2^6 resamples, all equally likely."""
    a, b = [[1, 0], [1, 1], [0, 1]], [[0, 1], [1, 0], [0, 0]]
    sums = [sum(picks[:3]) - sum(picks[3:]) for picks in itertools.product(*a, *b)]
    exact = np.mean([(total > 0) + (total == 0) / 2 for total in sums])
    found = ranking({"a": a, "b": b}, "runs", draws=40_000)
    assert found.better["a", "b"] == pytest.approx(exact, abs=0.01)
    assert found.better["b", "a"] == pytest.approx(1 - found.better["a", "b"])


def test_the_probability_over_competitions_is_that_of_all_resamples() -> None:
    """Of three competitions two are drawn, with replacement and for both agents together."""
    a, b = [[0.9], [0.2], [0.3]], [[0.4], [0.3], [0.5]]
    steps = [x[0] - y[0] for x, y in zip(a, b, strict=True)]
    exact = np.mean([sum(pair) > 0 for pair in itertools.product(steps, repeat=2)])
    assert ranking({"a": a, "b": b}, draws=40_000).better["a", "b"] == pytest.approx(exact, abs=0.01)


@pytest.mark.parametrize("vary", KINDS)
def test_the_probability_is_that_of_a_normal_difference(vary: Vary) -> None:
    """With unbiased variances: pooled within competitions, or of the paired differences between them."""
    generator = np.random.default_rng(5)
    a, b = generator.beta(2, 2, (75, 3)), generator.beta(2.05, 2, (75, 4))
    difference = (b.mean(axis=1) - a.mean(axis=1)).mean()
    within = sum((table.var(axis=1, ddof=1) / table.shape[1]).sum() for table in (a, b)) / 75**2
    error = math.sqrt(within) if vary == "runs" else stats.sem(b.mean(axis=1) - a.mean(axis=1))
    found = ranking({"a": a, "b": b}, vary, draws=20_000).better["b", "a"]
    assert found == pytest.approx(stats.norm.cdf(difference / error), abs=0.02)


def test_ranks_and_their_intervals() -> None:
    """The best and the worst are sure; the two in between are not."""
    generator = np.random.default_rng(3)
    rates = {"worst": 0.1, "middle": 0.4, "also": 0.42, "best": 0.8}
    found = ranking({name: generator.random((75, 3)) < rate for name, rate in rates.items()}, "runs")
    ranks = {each.agent: each for each in found.ranks}
    assert ranks["best"] == Rank("best", 1, 1, 1)
    assert ranks["worst"] == Rank("worst", 4, 4, 4)
    assert {(ranks[name].low, ranks[name].high) for name in ("middle", "also")} == {(2, 3)}


def test_equal_agents_share_a_rank_and_are_as_likely_better_as_worse() -> None:
    table = [[1, 0, 1], [0, 0, 1]]
    for vary in KINDS:
        found = ranking({"a": table, "b": table, "c": [[0, 0, 0]] * 2}, vary)
        assert [each.rank for each in found.ranks] == [1, 1, 3]
        assert found.better["a", "b"] == pytest.approx(0.5, abs=0.05)


def test_pairs_are_compared_on_what_both_have() -> None:
    """B ran one of the hard competitions less; A, which is as good elsewhere, does not lose by that."""
    a: Any = [[1, 1], [0, 0], [0, 0]]
    b: Any = [[1, 1], [NAN, NAN], [0, 0]]
    found = ranking({"a": a, "b": b, "c": [[NAN, NAN]] * 3})
    assert found.ranks == [Rank("a", 1, 1, 3), Rank("b", 1, 1, 3), Rank("c", None, 1, 3)]
    assert found.better["a", "b"] == 0.5
    assert math.isnan(found.better["a", "c"])


def test_one_run_of_each_competition_does_not_tell_how_much_runs_vary() -> None:
    found = ranking({"a": [[1], [1]], "b": [[0], [0]]}, "runs")
    assert math.isnan(found.better["a", "b"])
    assert [(each.rank, each.low, each.high) for each in found.ranks] == [(1, 1, 2), (2, 1, 2)]


cells = st.sampled_from([0.0, 1.0, 0.5, NAN])
tables = st.lists(
    st.integers(1, 4).flatmap(
        lambda seeds: st.lists(st.lists(cells, min_size=seeds, max_size=seeds), min_size=4, max_size=4)
    ),
    min_size=1,
    max_size=4,
)


@settings(max_examples=60)
@given(tables=tables, vary=st.sampled_from(KINDS))
def test_any_tables_have_ranks(tables: list[list[list[float]]], vary: Vary) -> None:
    found = ranking({str(place): table for place, table in enumerate(tables)}, vary, draws=50)
    for each in found.ranks:
        assert 1 <= each.low <= each.high <= len(tables)
    for (a, b), probability in found.better.items():
        assert math.isnan(probability) or probability == pytest.approx(1 - found.better[b, a])
    assert found == ranking({str(place): table for place, table in enumerate(tables)}, vary, draws=50) or any(
        map(math.isnan, found.better.values())
    )


def test_tables_of_other_shapes_are_refused() -> None:
    tables: list[dict[str, Any]] = [
        {"a": [[1.0]], "b": [[1.0], [0.0]]},
        {"a": []},
        {"a": [1.0]},
        {},
        {"a": [[math.inf]]},
    ]
    for unlike in tables:
        with pytest.raises(ValueError, match="need"):
            ranking(unlike)
