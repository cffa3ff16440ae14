"""Metrics of text for each row; the caller computes the mean. `truth` and `predicted` have the same length n."""

from __future__ import annotations

from collections.abc import Hashable, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray
from rapidfuzz.distance import Levenshtein
from rapidfuzz.process import cpdist

_ROWS = 200_000  # texts that are Python strings at a time


def levenshtein(
    truth: Sequence[Sequence[Hashable]] | pa.Array, predicted: Sequence[Sequence[Hashable]] | pa.Array
) -> NDArray[np.int64]:
    """Edit distance of each pair: insertions, deletions, substitutions at unit cost. Lower is better. Shape (n,).

    Rows are text, compared by Unicode code points, or lists of tokens. Arrow arrays of text are compared on all cores.

    >>> levenshtein(["kitten", "same"], ["sitting", "same"])
    array([3, 0])
    >>> levenshtein([[1, 2, 3]], [[1, -2]])
    array([2])
    """
    if isinstance(truth, pa.Array) and isinstance(predicted, pa.Array):
        return _distances_of_strings(truth, predicted)
    pairs = zip(truth, predicted, strict=True)
    return np.array([Levenshtein.distance(*_comparable(a, b)) for a, b in pairs], dtype=np.int64)


def _distances_of_strings(truth: pa.Array, predicted: pa.Array) -> NDArray[np.int64]:
    if len(truth) != len(predicted):
        raise ValueError(f"{len(truth)} and {len(predicted)} rows")
    distances = np.zeros(len(truth), dtype=np.int64)
    other = pc.not_equal(truth, predicted)
    rows = np.flatnonzero(other.to_numpy(zero_copy_only=False))
    for start in range(0, len(rows), _ROWS):
        some = rows[start : start + _ROWS]
        pair = [side.take(pa.array(some)).to_pylist() for side in (truth, predicted)]
        distances[some] = cpdist(*pair, scorer=Levenshtein.distance, dtype=np.int64, workers=-1)
    return distances


def word_jaccard(truth: Sequence[str], predicted: Sequence[str]) -> NDArray[np.float64]:
    """Words in common / words in either, in lower case, ignoring repeats. Higher is better. Shape (n,).

    Words end at any Unicode white space. NaN where neither side has a word.

    >>> word_jaccard(["Very good", ""], ["good very very day", " "]).round(6)
    array([0.666667,      nan])
    """
    scores = np.full(len(truth), np.nan)
    for row, (true, guess) in enumerate(zip(truth, predicted, strict=True)):
        a, b = set(true.lower().split()), set(guess.lower().split())
        if a or b:
            scores[row] = len(a & b) / len(a | b)
    return scores


def _comparable(a: Sequence[Hashable], b: Sequence[Hashable]) -> tuple[Sequence[Hashable], Sequence[Hashable]]:
    """Text unchanged, tokens as numbers: rapidfuzz compares hashes of tokens, and -1 and -2 have the same one."""
    if isinstance(a, str) and isinstance(b, str):
        return a, b
    numbers = {token: number for number, token in enumerate(dict.fromkeys([*a, *b]))}
    return [numbers[token] for token in a], [numbers[token] for token in b]
