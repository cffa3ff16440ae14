"""Similarity of two sources and their shared fragments. Fingerprints find matches, which are extended by tokens.

Code that many sources share is common, and does not count as a match. A source and its forks count as one source here.
Otherwise, a notebook with many forks would be common itself, and a copy of it would not be found.
"""

from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import Container, Iterable, Iterator, Sequence
from copy import copy
from dataclasses import dataclass, replace

from grading.integrity.tokens import Document
from grading.integrity.winnowing import K, fingerprints, hashes

THRESHOLD = 0.6
"""Similarity above which a pair is flagged, as published."""
MIN_TOKENS = 80
"""Minimum number of shared tokens of a flagged pair, about ten lines. Fewer can be equal by chance."""
_COMMON_SHARE, _COMMON_MIN_NOTEBOOKS = 0.5, 4
_FORK_SHARE = 0.6
"""Share of the fingerprints of the smaller one of two sources that the other one has, too, if one of them is a fork."""
_MAX_POSITIONS = 8  # per fingerprint and source, so that a table of numbers does not take quadratic time


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
    the shares of each source. A small notebook copied into much other code shows in `of_second` only. `whole` is the
    similarity if nothing is ignored; 0 if that was not compared.
    """

    first: str
    second: str
    similarity: float
    of_first: float
    of_second: float
    tokens: int
    fragments: tuple[Fragment, ...]
    whole: float = 0.0

    @property
    def flagged(self) -> bool:
        """Whether a person should review the pair."""
        shares = (self.similarity, self.of_first, self.of_second, self.whole)
        return max(shares) >= THRESHOLD and self.tokens >= MIN_TOKENS


class _Hashed:
    """A source with its hashes and fingerprints, which are computed once for all comparisons."""

    def __init__(self, document: Document) -> None:
        self.document = document
        self.values = array("Q", hashes(document.tokens))  # a list would take five times the memory
        self.prints = fingerprints(self.values)
        self.ignored = bytearray(len(document.tokens))
        """1 for each token that is part of an ignored sequence."""

    def ignoring(self, ignored: Container[int]) -> _Hashed:
        """A copy in which the sequences with these hashes do not count."""
        copied = copy(self)
        copied.prints = {value: places for value, places in self.prints.items() if value not in ignored}
        copied.ignored = bytearray(len(self.document.tokens))
        for position, value in enumerate(self.values):
            if value in ignored:
                copied.ignored[position : position + K] = b"\1" * K
        return copied


class Corpus:
    """Sources to compare with. Code that many of them share is common, and does not count as a match."""

    def __init__(self, documents: Iterable[Document], ignored: Iterable[Document] = (), *, whole: bool = False) -> None:
        """Index the documents.

        Args:
            documents: the possible sources of copied code.
            ignored: code that every run starts with, such as an agent's own template.
            whole: compare also without ignoring anything, so that a copy is found although its code is common, or
                although the agent ships it in its template.
        """
        self.documents = [document for document in documents if len(document.tokens) >= K]
        self._whole = whole
        self._all = [_Hashed(document) for document in self.documents]
        self._index: dict[int, list[int]] = {}
        for index, source in enumerate(self._all):
            for value in source.prints:
                self._index.setdefault(value, []).append(index)
        self._ignored = {value for document in ignored for value in hashes(document.tokens)} | self._common()
        self._counted = [source.ignoring(self._ignored) for source in self._all]

    def _common(self) -> set[int]:
        """The hashes of common code."""
        families = self._families()
        families_by_value: dict[int, set[int]] = {}
        for index, source in enumerate(self._all):
            for value in set(source.values):
                families_by_value.setdefault(value, set()).add(families[index])
        min_families = max(_COMMON_MIN_NOTEBOOKS, _COMMON_SHARE * len(set(families)))
        return {
            value
            for value, families_with_value in families_by_value.items()
            if len(families_with_value) >= min_families
        }

    def _families(self) -> list[int]:
        """For each document the index of the largest document that it is a fork of, or its own index."""
        families = list(range(len(self.documents)))
        heads: set[int] = set()
        for index in sorted(families, key=lambda number: -len(self._all[number].prints)):
            prints = self._all[index].prints
            shared = Counter(other for value in prints for other in self._index[value] if other in heads)
            nearest = max(shared, key=lambda other: shared[other], default=index)
            if shared[nearest] >= _FORK_SHARE * len(prints) and nearest != index:
                families[index] = nearest
            else:
                heads.add(index)
        return families

    def matches(self, document: Document, skip: Sequence[str] = ()) -> Iterator[Match]:
        """The matches of `document` with every source except those named in `skip`."""
        own = _Hashed(document)
        counted = own.ignoring(self._ignored)
        searched = own if self._whole else counted
        for index in sorted({index for value in searched.prints for index in self._index.get(value, ())}):
            if self.documents[index].name not in skip:
                match = _compare(counted, self._counted[index])
                if self._whole and self._ignored:
                    match = _with_whole(match, _compare(own, self._all[index]))
                if match is not None:
                    yield match


def _with_whole(match: Match | None, whole: Match | None) -> Match | None:
    """A match with the similarity if nothing is ignored."""
    if whole is None or (whole.similarity < THRESHOLD and match is None):
        return match
    if match is None or (whole.similarity >= THRESHOLD and not match.flagged):
        match = whole  # its fragments show what is copied
    return replace(match, whole=whole.similarity)


def _compare(first: _Hashed, second: _Hashed) -> Match | None:
    """Compare two sources; None if they share nothing. Common code counts in neither part of the fractions."""
    a, b = first.document.tokens, second.document.tokens
    seeds = sorted(
        (i, j)
        for value in first.prints.keys() & second.prints.keys()
        for i in first.prints[value][:_MAX_POSITIONS]
        for j in second.prints[value][:_MAX_POSITIONS]
    )
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
            fragments.append(Fragment(_lines(first.document, i, length), _lines(second.document, j, length), length))
        shown[i : i + length] = b"\1" * length
    own_a, own_b = len(a) - sum(first.ignored), len(b) - sum(second.ignored)
    shared_a = sum(covered and not ignored for covered, ignored in zip(covered_a, first.ignored, strict=True))
    shared_b = sum(covered and not ignored for covered, ignored in zip(covered_b, second.ignored, strict=True))
    if not shared_a or not shared_b:
        return None
    return Match(
        first=first.document.name,
        second=second.document.name,
        similarity=(shared_a + shared_b) / (own_a + own_b),
        of_first=shared_a / own_a,
        of_second=shared_b / own_b,
        tokens=min(shared_a, shared_b),
        fragments=tuple(sorted(fragments, key=lambda fragment: fragment.first)),
    )


def _grow(a: Sequence[str], b: Sequence[str], i: int, j: int) -> tuple[int, int, int]:
    """The longest shared sequence around tokens `i` and `j`: its start in each source, and its length."""
    end_i, end_j = i, j
    while end_i < len(a) and end_j < len(b) and a[end_i] == b[end_j]:
        end_i, end_j = end_i + 1, end_j + 1
    while i and j and a[i - 1] == b[j - 1]:
        i, j = i - 1, j - 1
    return i, j, end_i - i


def _lines(document: Document, start: int, length: int) -> tuple[int, int]:
    return document.lines[start], document.lines[start + length - 1]
