"""Metrics of text for each row; the caller computes the mean. `truth` and `predicted` have the same length n."""

from __future__ import annotations

import codecs
from collections.abc import Hashable, Sequence
from itertools import chain, pairwise

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray
from rapidfuzz.distance import Levenshtein
from rapidfuzz.process import cpdist

from common.concurrency import prefetch
from competitions.scoring.metrics.items import Items, count_distinct, factorized, split_items

_BATCH_ROWS = 8_000  # texts that are converted to Python strings at a time, so that memory is reused
_MAX_WAITING_BATCHES = 2  # batches that wait to be compared
_MIN_PARALLEL_PAIRS = 1000  # with fewer pairs, one core finishes before others have started
_FIRST_CODE_POINT, _LAST_CODE_POINT = 0xE000, 0x10FFFF  # code points above the surrogates, which are not characters
_decode = codecs.getdecoder("utf-32-le")  # `bytes.decode` would import the codec in each process that grades


def levenshtein(
    truth: Sequence[Sequence[Hashable]] | pa.Array | Items,
    predicted: Sequence[Sequence[Hashable]] | pa.Array | Items,
    *,
    rows: NDArray[np.intp] | None = None,
) -> NDArray[np.int64]:
    """Edit distance of each pair: insertions, deletions, substitutions at unit cost. Lower is better. Shape (n,).

    Rows are text, compared by Unicode code points, or lists of tokens, also as `Items`. With Arrow arrays of text,
    `rows` may give the index in `predicted` for each of `truth`, shape (n,); by default it is the same position.
    Ordering the texts beforehand would need memory for a copy of all of them.

    >>> levenshtein(["kitten", "same"], ["sitting", "same"])
    array([3, 0])
    >>> levenshtein([[1, 2, 3]], [[1, -2]])
    array([2])
    >>> levenshtein(pa.array(["kitten", "same"]), pa.array(["same", "sitting"]), rows=np.array([1, 0]))
    array([3, 0])
    """
    if isinstance(truth, pa.Array) and isinstance(predicted, pa.Array):
        return _distances_of_strings(truth, predicted, rows)
    if rows is not None:
        raise TypeError("rows are given for texts that are not those of an Arrow array")
    if isinstance(truth, Items) or isinstance(predicted, Items):
        return _distances_of_items(Items.of(truth), Items.of(predicted))
    if len(truth) != len(predicted):
        raise ValueError(f"{len(truth)} and {len(predicted)} rows")
    if not all(isinstance(row, str) for row in chain(truth, predicted)):
        truth, predicted = _as_texts(truth, predicted)
    return _cpdist(truth, predicted)


def _distances_of_strings(truth: pa.Array, predicted: pa.Array, rows: NDArray[np.intp] | None) -> NDArray[np.int64]:
    if len(truth) != len(predicted if rows is None else rows):
        raise ValueError(f"{len(truth)} and {len(predicted if rows is None else rows)} rows")
    distances = np.zeros(len(truth), dtype=np.int64)

    def different(start: int) -> tuple[NDArray[np.intp], pa.Array, pa.Array]:
        part = slice(start, start + _BATCH_ROWS)
        sides = truth[part], predicted[part] if rows is None else predicted.take(pa.array(rows[part]))
        positions = np.flatnonzero(pc.not_equal(*sides).to_numpy(zero_copy_only=False))
        true_texts, predicted_texts = (side.take(pa.array(positions)) for side in sides)
        return start + positions, true_texts, predicted_texts

    # Creating and comparing Python strings holds the GIL; finding the texts that differ does not.
    for positions, true_texts, predicted_texts in prefetch(
        map(different, range(0, len(truth), _BATCH_ROWS)), _MAX_WAITING_BATCHES
    ):
        texts = (side.to_numpy(zero_copy_only=False) for side in (true_texts, predicted_texts))
        distances[positions] = cpdist(*texts, scorer=Levenshtein.distance, dtype=np.int64)
    return distances


def _cpdist(truth: Sequence[Sequence[Hashable]], predicted: Sequence[Sequence[Hashable]]) -> NDArray[np.int64]:
    workers = -1 if len(truth) >= _MIN_PARALLEL_PAIRS else 1
    return cpdist(truth, predicted, scorer=Levenshtein.distance, dtype=np.int64, workers=workers).astype(np.int64)


def _distances_of_items(truth: Items, predicted: Items) -> NDArray[np.int64]:
    if len(truth.sizes) != len(predicted.sizes):
        raise ValueError(f"{len(truth.sizes)} and {len(predicted.sizes)} rows")
    codes, count = factorized(truth.values, predicted.values)
    parts = (codes[: len(truth.values)], truth.sizes), (codes[len(truth.values) :], predicted.sizes)
    if count > _LAST_CODE_POINT - _FIRST_CODE_POINT:
        return levenshtein(*([row.tolist() for row in np.split(part, np.cumsum(sizes)[:-1])] for part, sizes in parts))
    return _cpdist(*(_characters(part, sizes) for part, sizes in parts))


def word_jaccard(truth: Sequence[str], predicted: Sequence[str]) -> NDArray[np.float64]:
    """Words in common / words in either, in lower case, ignoring repeats. Higher is better. Shape (n,).

    Words end at any Unicode white space. NaN where neither side has a word.

    >>> word_jaccard(["Very good", ""], ["good very very day", " "]).round(6)
    array([0.666667,      nan])
    """
    in_truth, in_predicted, in_both = count_distinct(_words(truth), _words(predicted))
    either = in_truth + in_predicted - in_both
    scores = np.full(len(either), np.nan)
    np.divide(in_both, either, out=scores, where=either > 0)
    return scores


def _words(texts: Sequence[str]) -> Items:
    return split_items(pa.array([text.lower() for text in texts], pa.string()))


def _as_texts(
    truth: Sequence[Sequence[Hashable]], predicted: Sequence[Sequence[Hashable]]
) -> tuple[Sequence[Sequence[Hashable]], Sequence[Sequence[Hashable]]]:
    """Rows of tokens as text with a character for each distinct token.

    rapidfuzz compares hashes of tokens, and -1 and -2 have the same hash.
    """
    rows = [*truth, *predicted]
    codes, distinct = pd.factorize(np.fromiter(chain.from_iterable(rows), dtype=object), use_na_sentinel=False)
    if len(distinct) > _LAST_CODE_POINT - _FIRST_CODE_POINT:
        pairs = [_numbered(a, b) for a, b in zip(truth, predicted, strict=True)]
        return [a for a, _ in pairs], [b for _, b in pairs]
    texts = _characters(codes, np.array([*map(len, rows)], dtype=np.int64))
    return texts[: len(truth)], texts[len(truth) :]


def _characters(codes: NDArray[np.integer], sizes: NDArray[np.int64]) -> list[str]:
    """Rows with these numbers of codes, as text with a character for each code."""
    everything, _ = _decode((codes + _FIRST_CODE_POINT).astype("<u4").tobytes())
    ends = np.append(0, np.cumsum(sizes)).tolist()
    return [everything[start:end] for start, end in pairwise(ends)]


def _numbered(a: Sequence[Hashable], b: Sequence[Hashable]) -> tuple[Sequence[Hashable], Sequence[Hashable]]:
    """The tokens of a pair as numbers."""
    numbers = {token: number for number, token in enumerate(dict.fromkeys([*a, *b]))}
    return [numbers[token] for token in a], [numbers[token] for token in b]
