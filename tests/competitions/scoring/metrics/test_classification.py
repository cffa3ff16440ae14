"""Hard classes against scikit-learn, on families of labels."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from sklearn import metrics as sk
from sklearn.preprocessing import MultiLabelBinarizer

from competitions.scoring.metrics.classification import (
    accuracy,
    f1_macro,
    f1_micro_sets,
    f_beta,
    matthews_corrcoef,
    quadratic_weighted_kappa,
)


def families(seed: int = 0) -> Iterator[tuple[str, Any, Any]]:
    rng = np.random.default_rng(seed)
    truth = rng.integers(0, 5, 200)
    yield "random", truth, rng.integers(0, 5, 200)
    yield "good", truth, np.where(rng.random(200) < 0.8, truth, 2)
    yield "perfect", truth, truth
    yield "constant", truth, np.full(200, 3)
    yield "foreign classes", truth, rng.integers(-3, 12, 200)
    yield "whole floats", truth, rng.integers(0, 5, 200).astype(float)
    yield "two classes", truth > 2, rng.integers(0, 2, 200)
    yield "gaps between classes", truth * 100, rng.choice([0, 100, 400, 1000], 200)
    yield "one row", truth[:1], truth[:1] + 1
    yield "text", np.array(list("abcde"), dtype=object)[truth], rng.choice(list("abz"), 200).astype(object)


CASES = pytest.mark.parametrize(("truth", "predicted"), [pytest.param(*case[1:], id=case[0]) for case in families()])


@CASES
def test_accuracy(truth: Any, predicted: Any) -> None:
    assert accuracy(truth, predicted) == pytest.approx(
        np.mean([a == b for a, b in zip(truth, predicted, strict=True)]), rel=1e-12
    )


@CASES
def test_f1_macro(truth: Any, predicted: Any) -> None:
    assert f1_macro(truth, predicted) == pytest.approx(sk.f1_score(truth, predicted, average="macro"), rel=1e-12)


@CASES
def test_matthews_corrcoef(truth: Any, predicted: Any) -> None:
    assert matthews_corrcoef(truth, predicted) == pytest.approx(sk.matthews_corrcoef(truth, predicted), rel=1e-12)


@CASES
def test_quadratic_weighted_kappa(truth: Any, predicted: Any) -> None:
    expected = sk.cohen_kappa_score(predicted, truth, weights="quadratic")
    assert quadratic_weighted_kappa(truth, predicted) == pytest.approx(expected, rel=1e-12, abs=1e-15)


@pytest.mark.parametrize("metric", [accuracy, f1_macro, matthews_corrcoef, quadratic_weighted_kappa])
def test_do_not_depend_on_the_order_of_rows(metric: Any) -> None:
    for _, truth, predicted in families():
        order = np.random.default_rng(1).permutation(len(truth))
        assert metric(truth[order], predicted[order]) == pytest.approx(metric(truth, predicted), rel=1e-12, nan_ok=True)


def test_text_equals_no_number() -> None:
    assert accuracy([1, 0], np.array(["1", "0"], dtype=object)) == 0
    assert accuracy(["a", "b"], [1, 2]) == 0
    with pytest.raises(ValueError, match="mixed"):
        f1_macro([1, 2], ["1", "2"])


def test_shapes_must_agree() -> None:
    with pytest.raises(ValueError, match="one length"):
        accuracy([1, 2], [1])


@pytest.mark.parametrize(("truth", "predicted"), [case[1:] for case in families() if case[0] != "text"])
def test_kappa_with_given_classes_leaves_gaps(truth: Any, predicted: Any) -> None:
    classes = np.union1d(np.arange(12), np.union1d(truth, predicted))
    expected = sk.cohen_kappa_score(predicted, truth, weights="quadratic", labels=classes)
    found = quadratic_weighted_kappa(truth, predicted, classes=range(12))
    assert found == pytest.approx(expected, rel=1e-12, abs=1e-15)


def test_kappa_of_a_single_label_is_undefined() -> None:
    assert np.isnan(quadratic_weighted_kappa([1, 1], [1, 1]))


@pytest.mark.parametrize("seed", range(5))
def test_f1_micro_sets(seed: int) -> None:
    rng = np.random.default_rng(seed)
    words = np.array(["a", "b", "c", "A", "007", "7", "unknown"])
    truth = [" ".join(rng.choice(words[:-1], rng.integers(0, 4))) for _ in range(50)]
    predicted = ["  ".join(rng.choice(words, rng.integers(0, 5))) for _ in range(50)]
    classes = sorted({word for row in truth for word in row.split()})
    binary = MultiLabelBinarizer(classes=classes)
    true = binary.fit_transform([row.split() for row in truth])
    guess = binary.transform([[w for w in row.split() if w in classes] for row in predicted])
    assert f1_micro_sets(truth, predicted) == pytest.approx(sk.f1_score(true, guess, average="micro"), rel=1e-12)

    binary = MultiLabelBinarizer(classes=words)
    true, guess = (binary.fit_transform([row.split() for row in rows]) for rows in (truth, predicted))
    expected = sk.f1_score(true, guess, average="micro")
    assert f1_micro_sets(truth, predicted, count_unknown=True) == pytest.approx(expected, rel=1e-12)


def test_f1_micro_sets_without_labels_is_zero() -> None:
    assert f1_micro_sets(["a", "b c"], ["", "unknown"]) == 0
    assert f1_micro_sets(["", ""], ["", ""]) == 0


@pytest.mark.parametrize("beta", [0.5, 1.0, 2.0])
def test_f_beta(beta: float) -> None:
    rng = np.random.default_rng(0)
    truth, predicted = rng.random(100) < 0.4, rng.random(100) < 0.5
    counts = (truth & predicted).sum(), (~truth & predicted).sum(), (truth & ~predicted).sum()
    assert f_beta(*counts, beta=beta) == pytest.approx(sk.fbeta_score(truth, predicted, beta=beta), rel=1e-12)
    assert f_beta(0, 3, 4, beta=beta) == 0
