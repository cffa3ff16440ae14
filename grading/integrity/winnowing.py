"""Fingerprints of a sequence of tokens by winnowing (Schleimer, Wilkerson and Aiken 2003, "Winnowing: local algorithms
for document fingerprinting").

Of every window of `WINDOW` consecutive hashes of `K` tokens, the smallest (the rightmost of several) is kept. Any run
of at least ``WINDOW + K - 1`` tokens that two sources share then gives at least one fingerprint that they share, and no
run shorter than `K` gives one.
"""

from __future__ import annotations

import hashlib
from collections import deque
from collections.abc import Sequence

K = 12
"""Tokens in a hash: shorter runs are taken for chance. About one and a half lines."""
WINDOW = 9
"""Hashes in a window: runs of 20 tokens are always found."""


def hashes(tokens: Sequence[str], k: int = K) -> list[int]:
    """Hash of every run of `k` tokens, 64 bits; empty for fewer tokens."""
    words = [hashlib.blake2b(token.encode("utf-8", "replace"), digest_size=8).digest() for token in tokens]
    return [
        int.from_bytes(hashlib.blake2b(b"".join(words[i : i + k]), digest_size=8).digest(), "big")
        for i in range(len(words) - k + 1)
    ]


def fingerprints(tokens: Sequence[str], k: int = K, window: int = WINDOW) -> dict[int, list[int]]:
    """The chosen hashes and where they are: hash -> indices of the first of its `k` tokens, ascending.

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
