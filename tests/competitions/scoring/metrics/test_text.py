"""Text metrics against literal implementations."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from competitions.scoring.metrics import text
from competitions.scoring.metrics.text import levenshtein, word_jaccard
from tests.competitions.scoring.metrics.references import edit_distance


@pytest.mark.parametrize("seed", range(5))
def test_levenshtein_of_text(seed: int) -> None:
    rng = np.random.default_rng(seed)
    truth, predicted = (
        ["".join(rng.choice(list("abé\U0001f600 "), rng.integers(0, 90))) for _ in range(20)] for _ in "ab"
    )
    assert levenshtein(truth, predicted).tolist() == [
        edit_distance(a, b) for a, b in zip(truth, predicted, strict=True)
    ]


@pytest.mark.parametrize("count", [0, 1, 7, 20, 21])
def test_levenshtein_of_arrow_text_in_any_order(count: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(text, "_BATCH_ROWS", 7)
    rng = np.random.default_rng(count)
    truth = ["".join(rng.choice(list("abé\U0001f600 "), rng.integers(0, 9))) for _ in range(count)]
    predicted = [each if rng.random() < 0.5 else each[1:] + "x" for each in truth]
    wanted = [edit_distance(a, b) for a, b in zip(truth, predicted, strict=True)]
    order = rng.permutation(count)
    mixed = pa.array([predicted[place] for place in order], pa.string())
    assert levenshtein(pa.array(truth, pa.string()), mixed, rows=np.argsort(order)).tolist() == wanted
    assert levenshtein(pa.array(truth, pa.string()), pa.array(predicted, pa.string())).tolist() == wanted
    with pytest.raises(ValueError, match=f"{count} and {count + 1} rows"):
        levenshtein(pa.array(truth, pa.string()), mixed, rows=np.zeros(count + 1, np.int64))
    with pytest.raises(TypeError, match="Arrow"):
        levenshtein(truth, predicted, rows=np.arange(count))


@pytest.mark.parametrize("seed", range(5))
def test_levenshtein_of_tokens(seed: int) -> None:
    rng = np.random.default_rng(seed)
    truth, predicted = (
        [rng.choice([-2, -1, 0, 1, 2**61], rng.integers(0, 20)).tolist() for _ in range(20)] for _ in "ab"
    )
    assert levenshtein(truth, predicted).tolist() == [
        edit_distance(a, b) for a, b in zip(truth, predicted, strict=True)
    ]


def test_tokens_of_equal_hash_differ() -> None:
    assert levenshtein([[-1], [1]], [[-2], [2**61]]).tolist() == [1, 1]


def test_lengths_must_agree() -> None:
    for metric in (levenshtein, word_jaccard):
        with pytest.raises(ValueError, match="2 and 1 rows"):
            metric(["a", "b"], ["a"])


@pytest.mark.parametrize(
    ("a", "b", "score"),
    [
        ("good day", "Good  DAY day", 1),
        ("a b", "b c", 1 / 3),
        ("a", "", 0),
        ("", "a", 0),
        ("a\u00a0b", "b a", 1),
        ("7.0", "7", 0),
        ("İ", "i̇", 1),
        (" ", "", np.nan),
    ],
)
def test_word_jaccard(a: str, b: str, score: float) -> None:
    assert word_jaccard([a], [b])[0] == pytest.approx(score, nan_ok=True)
