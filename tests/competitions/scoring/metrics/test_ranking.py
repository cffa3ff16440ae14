"""Scores whose order matters, against scikit-learn, SciPy and literal loops."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from scipy.stats import kendalltau
from sklearn import metrics as sk

from competitions.scoring.metrics.bias import bias_auc
from competitions.scoring.metrics.items import Items
from competitions.scoring.metrics.ranking import (
    average_precision,
    kendall_tau_orders,
    label_ranking_average_precision,
    mean_average_precision_at_k,
    mean_columnwise_roc_auc,
    power_mean,
    roc_auc,
)
from competitions.scoring.metrics.weighted_roc import weighted_roc_auc
from tests.competitions.scoring.metrics.references import bias, weighted_area


def families(seed: int = 0) -> Iterator[tuple[str, Any, Any]]:
    rng = np.random.default_rng(seed)
    truth = (rng.random(300) < 0.3).astype(int)
    yield "random", truth, rng.random(300)
    yield "informative", truth, truth + rng.normal(0, 1, 300)
    yield "ties", truth, rng.integers(0, 4, 300)
    yield "constant", truth, np.full(300, 0.5)
    yield "perfect", truth, truth
    yield "inverted", truth, -truth * 1e9
    yield "boolean", truth.astype(bool), rng.random(300) < 0.5
    yield "two rows", np.array([0, 1]), np.array([0.2, 0.1])


CASES = pytest.mark.parametrize(("truth", "scores"), [pytest.param(*case[1:], id=case[0]) for case in families()])


@CASES
def test_roc_auc(truth: Any, scores: Any) -> None:
    assert roc_auc(truth, scores) == pytest.approx(sk.roc_auc_score(truth, scores), rel=1e-12, abs=1e-15)


@CASES
def test_average_precision(truth: Any, scores: Any) -> None:
    assert average_precision(truth, scores) == pytest.approx(sk.average_precision_score(truth, scores), rel=1e-12)


@CASES
def test_weighted_roc_auc(truth: Any, scores: Any) -> None:
    assert weighted_roc_auc(truth, scores) == pytest.approx(weighted_area(truth, scores), rel=1e-9, abs=1e-12)


def test_weighted_roc_auc_of_a_constant() -> None:
    assert weighted_roc_auc([0, 1, 1, 0], [1, 1, 1, 1]) == pytest.approx(0.5857142857142857, rel=1e-15)


@pytest.mark.parametrize("metric", [roc_auc, average_precision, weighted_roc_auc])
def test_do_not_depend_on_the_order_of_rows(metric: Any) -> None:
    for _, truth, scores in families():
        order = np.random.default_rng(1).permutation(len(truth))
        assert metric(truth[order], scores[order]) == pytest.approx(metric(truth, scores), rel=1e-12)


def test_undefined_areas_are_errors() -> None:
    for metric in (roc_auc, average_precision):
        with pytest.raises(ValueError, match="undefined"):
            metric([0, 0], [0.1, 0.2])
        for value in (np.nan, np.inf):
            with pytest.raises(ValueError, match="finite"):
                metric([0, 1], [0.1, value])
    with pytest.raises(ValueError, match="one length"):
        roc_auc([0, 1], [0.1])


def test_mean_columnwise_roc_auc() -> None:
    rng = np.random.default_rng(0)
    truth, scores = rng.integers(0, 2, (100, 4)), rng.integers(0, 9, (100, 4))
    assert mean_columnwise_roc_auc(truth, scores) == pytest.approx(sk.roc_auc_score(truth, scores), rel=1e-12)
    with pytest.raises(ValueError, match="one shape"):
        mean_columnwise_roc_auc(truth, scores[:, :3])


@pytest.mark.parametrize("levels", [3, 1000])
def test_label_ranking_average_precision(levels: int) -> None:
    rng = np.random.default_rng(0)
    truth, scores = (rng.random((200, 7)) < 0.3).astype(int), rng.integers(0, levels, (200, 7))
    truth[0], truth[1] = 0, 1
    weights = truth.sum(axis=1)
    kept = weights > 0
    expected = sk.label_ranking_average_precision_score(truth[kept], scores[kept], sample_weight=weights[kept])
    assert label_ranking_average_precision(truth, scores) == pytest.approx(expected, rel=1e-12)


def test_mean_average_precision_at_k() -> None:
    rows = [
        ({"a"}, ["a"], 1),
        ({"a"}, ["b", "a", "a"], 1 / 2),
        ({"a"}, ["b", "c", "d", "e", "f", "a"], 0),
        ({"a", "b"}, ["a", "a", "b"], (1 + 2 / 3) / 2),
        ({"a", "b"}, [], 0),
        ({*"abcdefg"}, [*"abcdefg"], 1),
    ]
    for truth, guesses, expected in rows:
        assert mean_average_precision_at_k([truth], [guesses], 5) == pytest.approx(expected)
    truths, lists, expected = zip(*rows, strict=True)
    assert mean_average_precision_at_k(truths, lists, 5) == pytest.approx(np.mean(expected))
    assert mean_average_precision_at_k(truths, lists[:2], 5) == pytest.approx(0.75)


@pytest.mark.parametrize("n", [2, 17, 64, 65, 500])
def test_kendall_tau_of_one_order(n: int) -> None:
    rng = np.random.default_rng(n)
    truth, guess = rng.permutation(n).astype(str).tolist(), rng.permutation(n).astype(str).tolist()
    ranks = [guess.index(item) for item in truth]
    assert kendall_tau_orders([truth], [guess]) == pytest.approx(kendalltau(range(n), ranks)[0], rel=1e-12)
    assert kendall_tau_orders([truth], [truth]) == 1
    assert kendall_tau_orders([truth], [truth[::-1]]) == -1


def test_kendall_tau_pools_orders() -> None:
    assert kendall_tau_orders(["ab", "abcd"], ["ba", "abcd"]) == pytest.approx(1 - 4 / (2 + 12))
    with pytest.raises(ValueError, match="'b' is missing"):
        kendall_tau_orders(["ab"], ["aa"])


@pytest.mark.parametrize("seed", range(20))
def test_kendall_tau_of_columns_of_text_is_that_of_lists(seed: int) -> None:
    rng = np.random.default_rng(seed)
    letters = np.array(list("abé\0"[: 3 + seed % 2]))
    words = ["".join(rng.choice(letters, rng.integers(1, 7 + seed % 4))) for _ in range(400)]
    rows = [list(dict.fromkeys(rng.choice(words, size).tolist())) for size in (0, 1, 2, 3, 30, 30, 400)]
    guesses = [rng.permutation(np.array(row, dtype=object)).tolist() for row in rows]
    ranks = [[guess.index(item) for item in row] for row, guess in zip(rows, guesses, strict=True)]
    wrong = sum(before > after for row in ranks for k, before in enumerate(row) for after in row[k + 1 :])
    expected = 1 - 4 * wrong / sum(len(row) * (len(row) - 1) for row in rows)
    sides = [
        Items(pa.array(list(chain.from_iterable(side)), pa.string()), Items.of(side).sizes) for side in (rows, guesses)
    ]
    assert kendall_tau_orders(*sides) == kendall_tau_orders(rows, guesses) == expected


def test_power_mean() -> None:
    assert power_mean([0.5, 0.9], 1) == pytest.approx(0.7)
    assert power_mean([0.5, 0.9], -5) == pytest.approx(((0.5**-5 + 0.9**-5) / 2) ** (-1 / 5))
    assert power_mean([0.0, 0.9], -5) == 0


def test_bias_auc() -> None:
    rng = np.random.default_rng(0)
    truth, scores, member = rng.random(400) < 0.4, rng.random(400) < 0.5, rng.random((400, 3)) < 0.5
    expected = bias(truth, scores, member)
    assert bias_auc(truth, scores, member) == pytest.approx(expected, rel=1e-12)
