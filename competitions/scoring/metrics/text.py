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

_ROWS = 8_000  # texts that are Python strings at a time, in memory that the next ones use again
_AHEAD = 2  # parts of so many rows that wait to be compared
_FEW = 1000  # pairs that one core compares before others have begun
_FIRST, _LAST = 0xE000, 0x10FFFF  # code points after those that are no characters
_decode = codecs.getdecoder("utf-32-le")  # found once: `bytes.decode` would import it in each process that grades


def levenshtein(
    truth: Sequence[Sequence[Hashable]] | pa.Array | Items,
    predicted: Sequence[Sequence[Hashable]] | pa.Array | Items,
    *,
    rows: NDArray[np.intp] | None = None,
) -> NDArray[np.int64]:
    """Edit distance of each pair: insertions, deletions, substitutions at unit cost. Lower is better. Shape (n,).

    Rows are text, compared by Unicode code points, or lists of tokens, also as `Items`. With Arrow arrays of text,
    `rows` may tell which of `predicted` belongs to each of `truth`, shape (n,); by default it is the one at the same
    place. To put texts in order before takes new memory for all of them.

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
        part = slice(start, start + _ROWS)
        sides = truth[part], predicted[part] if rows is None else predicted.take(pa.array(rows[part]))
        places = np.flatnonzero(pc.not_equal(*sides).to_numpy(zero_copy_only=False))
        ours, theirs = (side.take(pa.array(places)) for side in sides)
        return start + places, ours, theirs

    # To make Python strings and to compare them holds the GIL, to find those that differ does not.
    for places, ours, theirs in prefetch(map(different, range(0, len(truth), _ROWS)), _AHEAD):
        texts = (side.to_numpy(zero_copy_only=False) for side in (ours, theirs))
        distances[places] = cpdist(*texts, scorer=Levenshtein.distance, dtype=np.int64)
    return distances


def _cpdist(truth: Sequence[Sequence[Hashable]], predicted: Sequence[Sequence[Hashable]]) -> NDArray[np.int64]:
    workers = -1 if len(truth) >= _FEW else 1
    return cpdist(truth, predicted, scorer=Levenshtein.distance, dtype=np.int64, workers=workers).astype(np.int64)


def _distances_of_items(truth: Items, predicted: Items) -> NDArray[np.int64]:
    if len(truth.sizes) != len(predicted.sizes):
        raise ValueError(f"{len(truth.sizes)} and {len(predicted.sizes)} rows")
    codes, count = factorized(truth.values, predicted.values)
    parts = (codes[: len(truth.values)], truth.sizes), (codes[len(truth.values) :], predicted.sizes)
    if count > _LAST - _FIRST:
        return levenshtein(*([row.tolist() for row in np.split(part, np.cumsum(sizes)[:-1])] for part, sizes in parts))
    return _cpdist(*(_characters(part, sizes) for part, sizes in parts))


def word_jaccard(truth: Sequence[str], predicted: Sequence[str]) -> NDArray[np.float64]:
    """Words in common / words in either, in lower case, ignoring repeats. Higher is better. Shape (n,).

    Words end at any Unicode white space. NaN where neither side has a word.

    >>> word_jaccard(["Very good", ""], ["good very very day", " "]).round(6)
    array([0.666667,      nan])
    """
    ones, others, both = count_distinct(_words(truth), _words(predicted))
    either = ones + others - both
    scores = np.full(len(either), np.nan)
    np.divide(both, either, out=scores, where=either > 0)
    return scores


def _words(texts: Sequence[str]) -> Items:
    return split_items(pa.array([text.lower() for text in texts], pa.string()))


def _as_texts(
    truth: Sequence[Sequence[Hashable]], predicted: Sequence[Sequence[Hashable]]
) -> tuple[Sequence[Sequence[Hashable]], Sequence[Sequence[Hashable]]]:
    """Rows of tokens as text with a character for each distinct token.

    rapidfuzz compares hashes of tokens, and -1 and -2 have the same one.
    """
    rows = [*truth, *predicted]
    codes, distinct = pd.factorize(np.fromiter(chain.from_iterable(rows), dtype=object), use_na_sentinel=False)
    if len(distinct) > _LAST - _FIRST:
        pairs = [_numbered(a, b) for a, b in zip(truth, predicted, strict=True)]
        return [a for a, _ in pairs], [b for _, b in pairs]
    texts = _characters(codes, np.array([*map(len, rows)], dtype=np.int64))
    return texts[: len(truth)], texts[len(truth) :]


def _characters(codes: NDArray[np.integer], sizes: NDArray[np.int64]) -> list[str]:
    """Rows of so many codes, as text with a character for each code."""
    everything, _ = _decode((codes + _FIRST).astype("<u4").tobytes())
    ends = np.append(0, np.cumsum(sizes)).tolist()
    return [everything[start:end] for start, end in pairwise(ends)]


def _numbered(a: Sequence[Hashable], b: Sequence[Hashable]) -> tuple[Sequence[Hashable], Sequence[Hashable]]:
    """The tokens of a pair as numbers."""
    numbers = {token: number for number, token in enumerate(dict.fromkeys([*a, *b]))}
    return [numbers[token] for token in a], [numbers[token] for token in b]
