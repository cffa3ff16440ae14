"""Similarity of two sources and their shared fragments. Fingerprints find matches, which are extended by tokens."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from grading.integrity.tokens import Document
from grading.integrity.winnowing import K, fingerprints, hashes

THRESHOLD = 0.6
"""Similarity above which a pair is flagged, as published."""
LEAST_TOKENS = 80
"""Minimum number of shared tokens of a flagged pair, about ten lines. Fewer can be equal by chance."""
_COMMON_SHARE, _COMMON_LEAST = 0.5, 4
_MOST_PLACES = 8  # per fingerprint and source, so that a table of numbers does not take quadratic time


@dataclass(frozen=True)
class Fragment:
    """A sequence of tokens that two sources share. Lines are counted from 1, both ends included."""

    first: tuple[int, int]
    second: tuple[int, int]
    tokens: int


@dataclass(frozen=True)
class Match:
    """Two sources and the code that they share.

    `similarity` is the share, from 0 to 1, of both sources' tokens in shared fragments; `of_first` and `of_second` are
    the shares of each source. A small notebook copied into much other code shows in `of_second` only.
    """

    first: str
    second: str
    similarity: float
    of_first: float
    of_second: float
    tokens: int
    fragments: tuple[Fragment, ...]

    @property
    def flagged(self) -> bool:
        """Whether a person should review the pair."""
        return max(self.similarity, self.of_first, self.of_second) >= THRESHOLD and self.tokens >= LEAST_TOKENS


class Corpus:
    """Sources to compare with. Code that many of them share is common, and does not count as a match."""

    def __init__(self, documents: Iterable[Document], ignored: Iterable[Document] = ()) -> None:
        """Index the documents.

        Args:
            documents: the possible sources of copied code.
            ignored: code that every run starts with, such as an agent's own template.
        """
        self.documents = [each for each in documents if len(each.tokens) >= K]
        self._prints = [fingerprints(each.tokens) for each in self.documents]
        self._ignored = {value for each in ignored for value in hashes(each.tokens)} | self._common()
        self._index: dict[int, list[int]] = {}
        for place, prints in enumerate(self._prints):
            for value in prints:
                self._index.setdefault(value, []).append(place)

    def _common(self) -> set[int]:
        counts = Counter(value for each in self.documents for value in set(hashes(each.tokens)))
        least = max(_COMMON_LEAST, _COMMON_SHARE * len(self.documents))
        return {value for value, count in counts.items() if count >= least}

    def matches(self, document: Document, skip: Sequence[str] = ()) -> Iterator[Match]:
        """The matches of `document` with every source except those named in `skip`."""
        prints = fingerprints(document.tokens)
        places = {p for value in prints.keys() - self._ignored for p in self._index.get(value, ())}
        for place in sorted(places):
            other = self.documents[place]
            if other.name not in skip:
                found = compare(document, other, prints, self._prints[place], self._ignored)
                if found is not None:
                    yield found


def compare(
    first: Document,
    second: Document,
    first_prints: Mapping[int, Sequence[int]],
    second_prints: Mapping[int, Sequence[int]],
    ignored: set[int] | frozenset[int] = frozenset(),
) -> Match | None:
    """Compare two sources; None if they share nothing. Common code counts in neither part of the fractions."""
    a, b = first.tokens, second.tokens
    seeds = sorted(
        (i, j)
        for value in first_prints.keys() & second_prints.keys() - ignored
        for i in first_prints[value][:_MOST_PLACES]
        for j in second_prints[value][:_MOST_PLACES]
    )
    common_a, common_b = _common_tokens(a, ignored), _common_tokens(b, ignored)
    covered_a, covered_b = bytearray(len(a)), bytearray(len(b))
    runs = []
    for i, j in seeds:
        if covered_a[i] and covered_b[j]:  # already part of a match; extending every pair would take quadratic time
            continue
        i, j, length = _grow(a, b, i, j)
        covered_a[i : i + length] = covered_b[j : j + length] = b"\1" * length
        runs.append((length, i, j))
    fragments = []
    shown = bytearray(len(a))
    for length, i, j in sorted(runs, reverse=True):
        if not all(shown[i : i + length]):  # report each line of the first source only once
            fragments.append(Fragment(_lines(first, i, length), _lines(second, j, length), length))
        shown[i : i + length] = b"\1" * length
    own_a, own_b = len(a) - sum(common_a), len(b) - sum(common_b)
    shared_a = sum(c and not o for c, o in zip(covered_a, common_a, strict=True))
    shared_b = sum(c and not o for c, o in zip(covered_b, common_b, strict=True))
    if not shared_a or not shared_b:
        return None
    return Match(
        first=first.name,
        second=second.name,
        similarity=(shared_a + shared_b) / (own_a + own_b),
        of_first=shared_a / own_a,
        of_second=shared_b / own_b,
        tokens=min(shared_a, shared_b),
        fragments=tuple(sorted(fragments, key=lambda each: each.first)),
    )


def _grow(a: Sequence[str], b: Sequence[str], i: int, j: int) -> tuple[int, int, int]:
    """The longest shared sequence around tokens `i` and `j`: its start in each source, and its length."""
    end_i, end_j = i, j
    while end_i < len(a) and end_j < len(b) and a[end_i] == b[end_j]:
        end_i, end_j = end_i + 1, end_j + 1
    while i and j and a[i - 1] == b[j - 1]:
        i, j = i - 1, j - 1
    return i, j, end_i - i


def _common_tokens(tokens: Sequence[str], ignored: set[int] | frozenset[int]) -> bytearray:
    """1 for each token that is part of an ignored sequence."""
    marks = bytearray(len(tokens))
    if ignored:
        for place, value in enumerate(hashes(tokens)):
            if value in ignored:
                marks[place : place + K] = b"\1" * K
    return marks


def _lines(document: Document, start: int, length: int) -> tuple[int, int]:
    return document.lines[start], document.lines[start + length - 1]
