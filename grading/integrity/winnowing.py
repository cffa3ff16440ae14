"""Fingerprints of a sequence of tokens by winnowing (Schleimer, Wilkerson and Aiken 2003, "Winnowing: local algorithms
for document fingerprinting").

Of every window of `WINDOW` consecutive hashes of `K` tokens, the smallest (the rightmost of several) is kept. Then two
sources that share a sequence of at least ``WINDOW + K - 1`` tokens also share a fingerprint, and sequences shorter than
`K` never give one.
"""

from __future__ import annotations

import hashlib
from collections import deque
from collections.abc import Sequence

K = 12
"""Tokens per hash, about one and a half lines. Shorter matches are considered chance."""
WINDOW = 9
"""Hashes per window. Shared sequences of 20 tokens are always found."""


def hashes(tokens: Sequence[str], k: int = K) -> list[int]:
    """The 64-bit hash of every `k` consecutive tokens; empty for fewer tokens."""
    words = [hashlib.blake2b(token.encode("utf-8", "replace"), digest_size=8).digest() for token in tokens]
    return [
        int.from_bytes(hashlib.blake2b(b"".join(words[i : i + k]), digest_size=8).digest(), "big")
        for i in range(len(words) - k + 1)
    ]


def fingerprints(tokens: Sequence[str], k: int = K, window: int = WINDOW) -> dict[int, list[int]]:
    """The selected hashes and their positions: hash -> ascending indices of the first of its `k` tokens.

    >>> same = fingerprints(list("a long enough text about something"), k=5, window=4)
    >>> same == fingerprints(list("a long enough text about something"), k=5, window=4)
    True
    """
    values = hashes(tokens, k)
    chosen: dict[int, list[int]] = {}
    candidates: deque[int] = deque()
    last = -1
    for place, value in enumerate(values):
        while candidates and values[candidates[-1]] >= value:
            candidates.pop()
        candidates.append(place)
        if candidates[0] <= place - window:
            candidates.popleft()
        if place >= min(window, len(values)) - 1 and candidates[0] != last:
            last = candidates[0]
            chosen.setdefault(values[last], []).append(last)
    return chosen
