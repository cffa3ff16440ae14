"""Fingerprints of a sequence of tokens by winnowing (Schleimer, Wilkerson and Aiken 2003, "Winnowing: local algorithms
for document fingerprinting").

Of every window of `WINDOW` consecutive hashes of `K` tokens, the smallest (the rightmost of several) is kept. Then two
sources that share a sequence of at least ``WINDOW + K - 1`` tokens also share a fingerprint, and sequences shorter than
`K` never give one.
"""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import blake2b

import numpy as np

K = 12
"""Tokens per hash, about one and a half lines. Shorter matches are considered chance."""
WINDOW = 9
"""Hashes per window. Shared sequences of 20 tokens are always found."""
_BYTES = 8  # size of the hash of a token, and of the hash of `K` tokens


def hashes(tokens: Sequence[str], k: int = K) -> list[int]:
    """The 64-bit hash of every `k` consecutive tokens; empty for fewer tokens."""
    words = {token: blake2b(token.encode("utf-8", "replace"), digest_size=_BYTES).digest() for token in set(tokens)}
    joined, length = b"".join(map(words.__getitem__, tokens)), _BYTES * k
    digests = [
        blake2b(joined[start : start + length], digest_size=_BYTES).digest()
        for start in range(0, len(joined) - length + 1, _BYTES)
    ]
    values: list[int] = np.frombuffer(b"".join(digests), dtype=f">u{_BYTES}").tolist()
    return values


def fingerprints(values: Sequence[int], window: int = WINDOW) -> dict[int, list[int]]:
    """The selected hashes: hash -> the ascending indices of the first of its tokens.

    >>> fingerprints([5, 3, 3, 7, 9], window=2)
    {3: [1, 2], 7: [3]}
    """
    selected: dict[int, list[int]] = {}
    if not values:
        return selected
    window = min(window, len(values))
    backwards = np.array(values[::-1], dtype=np.uint64)  # `argmin` is the first of equal ones, and the last one counts
    first = np.lib.stride_tricks.sliding_window_view(backwards, window).argmin(axis=1)
    positions = len(values) - 1 - (np.arange(len(first)) + first)
    for position in np.unique(positions).tolist():
        selected.setdefault(values[position], []).append(position)
    return selected
