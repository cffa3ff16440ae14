"""Find the order of one large column of text in another, several times faster than Arrow's hash table.

Texts are read as 64-bit words, hashed, and put into a table of slots without looking for collisions: of texts that
share a slot only the last is found. The others are tried again with other bits of their hashes. What is found is then
compared word by word, so that hashes decide nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from competitions.tables.arrays import WORD, words_of
from competitions.tables.threads import on_all_cores

if TYPE_CHECKING:
    import pyarrow as pa

LEAST = 10_000
"""Texts from which this is faster than Arrow."""
_LONGEST = 128  # bytes of a text; longer ones are no ids
_ROUNDS = 12
_PART = 1 << 15  # texts at a time
_SPREAD = np.uint64(0xFF51AFD7ED558CCD)  # MurmurHash3's finalizer
_LENGTHS = np.uint64(0x9E3779B97F4A7C15)
_FIRST_BYTES = np.array([(1 << 8 * count) - 1 for count in range(WORD + 1)], np.uint64)
"""Masks of the first 0 to 8 bytes of a word."""


class Texts(NamedTuple):
    """Where each text starts and how many bytes it has, and the 64-bit word at each byte of all the text."""

    starts: NDArray[Any]  # whole numbers; of no use if all have the same length, of a word or more
    lengths: NDArray[Any]
    words: NDArray[np.uint64]
    length: int
    """Bytes of every text, if they are equally many, as ids often are; else 0."""

    def word(self, number: int, part: slice = slice(None)) -> NDArray[np.uint64]:
        """A word of each text, or of a part of them. Texts of one length are equal if all their words are.

        Words follow each other and end with zeros after the end of the text. If all texts have the same length, the
        last word may instead overlap the one before.
        """
        if self.length >= WORD:
            words: NDArray[np.uint64] = self.words[min(WORD * number, self.length - WORD) :: self.length][part]
            return words
        words = self.words[np.minimum(self.starts[part].astype(np.int64) + WORD * number, len(self.words) - 1)]
        words &= _FIRST_BYTES[np.clip(self.lengths[part] - WORD * number, 0, WORD)]
        return words


def permutation(given: pa.Array, wanted: pa.Array) -> NDArray[np.intp] | None:
    """For each wanted text its position among the given ones, shape (n,).

    None unless each is given once and wanted once, or if that was not found out: texts are long, or collide too often.

    Args:
        given: m >= n texts, without missing values. Those that are not wanted do not count.
        wanted: n texts, without missing values.
    """
    ours, theirs = on_all_cores(texts_of, (given, wanted))
    longest = int(ours.lengths.max(initial=0))
    if longest != int(theirs.lengths.max(initial=0)) or longest > _LONGEST or not longest:
        return None
    if ours.length != theirs.length:
        return None
    count = -(-longest // WORD)
    hashes, wanted_hashes = on_all_cores(partial(_hashes, count=count), (ours, theirs))
    asked = None if len(given) == len(wanted) else _places_among(hashes, wanted_hashes)
    rows = join(hashes if asked is None else hashes[asked], wanted_hashes)
    if rows is None:
        return None
    del hashes, wanted_hashes  # some 100 MB of six million texts
    if asked is not None:
        rows = asked[rows]
    if not ours.length and (ours.lengths[rows] != theirs.lengths).any():
        return None
    for number in range(count):
        words = ours.word(number) if ours.length >= WORD else _by_part(partial(ours.word, number), len(given))
        if any((words[rows[part]] != theirs.word(number, part)).any() for part in _parts(len(rows))):
            return None
    return rows


def texts_of(column: pa.Array) -> Texts:
    """The texts of a column without missing values."""
    _, offsets, data = column.buffers()
    kind = np.int64 if column.type == "large_string" else np.int32
    ends = np.frombuffer(offsets, kind)[column.offset : column.offset + len(column) + 1]
    starts, lengths = ends[:-1], np.diff(ends)
    length = int(lengths[0]) if len(lengths) and (lengths == lengths[0]).all() else 0
    if length >= WORD:
        lengths = np.broadcast_to(lengths[:1], lengths.shape)  # without memory for each
    else:
        starts = starts - ends[0]
    text = np.frombuffer(data if data is not None else b"", np.uint8)[ends[0] : ends[-1]]
    if length < WORD:  # words begin at every byte
        text = np.append(text, np.zeros(WORD, np.uint8))
    return Texts(starts, lengths, words_of(text), length)


def _parts(count: int) -> Iterator[slice]:
    """Slices of so many rows, so that results of computing stay in the processor's cache."""
    return (slice(start, start + _PART) for start in range(0, count, _PART))


def _by_part(of: Callable[[slice], NDArray[np.uint64]], count: int) -> NDArray[np.uint64]:
    found = np.empty(count, np.uint64)
    for part in _parts(count):
        found[part] = of(part)
    return found


def _hashes(texts: Texts, count: int) -> NDArray[np.uint64]:
    found = np.empty(len(texts.lengths), np.uint64)
    for part in _parts(len(found)):
        some = texts.lengths[part].astype(np.uint64) * _LENGTHS
        for number in range(count):
            some ^= texts.word(number, part)
            some ^= some >> np.uint64(32)  # products spread bits upwards only, and ids differ in their last bytes
            some *= _SPREAD
            some ^= some >> np.uint64(32)
        found[part] = some
    return found


def _places_among(given: NDArray[np.uint64], wanted: NDArray[np.uint64]) -> NDArray[np.intp]:
    """Where the given hashes are that are wanted."""
    if not len(wanted):
        return np.zeros(0, np.intp)
    ascending = np.sort(wanted)
    nearest = ascending[np.minimum(np.searchsorted(ascending, given), len(ascending) - 1)]
    return np.flatnonzero(nearest == given)


def join(given: NDArray[np.uint64], wanted: NDArray[np.uint64]) -> NDArray[np.intp] | None:
    """For each wanted hash the position of an equal given one, shape (n,). Equal hashes may be those of other things.

    None unless there are n of both and every position is found once, and if too many hashes share their slots.

    Args:
        given: n hashes, of which all bits are mixed.
        wanted: n hashes.
    """
    if len(given) != len(wanted):
        return None
    kind: Any = np.int32 if len(given) < 1 << 31 else np.int64  # the time is that of moving memory
    rows = np.empty(len(wanted), dtype=kind)
    nowhere = len(given)
    taken = np.zeros(nowhere + 1, dtype=bool)
    left, asked = np.arange(len(given), dtype=kind), np.arange(len(wanted), dtype=kind)
    for number in range(_ROUNDS):
        size = 1 << (2 * len(left) - 1).bit_length()  # most have a slot of their own
        shift, mask = np.uint64(5 * number % 32), np.uint64(size - 1)
        ours, theirs = (given, wanted) if not number else (given[left], wanted[asked])
        slots = np.zeros(size, dtype=kind)
        for part in _parts(len(ours)):
            slots[((ours[part] >> shift) & mask).view(np.int64)] = left[part]
        missed = []
        for part in _parts(len(theirs)):
            candidates = slots[((theirs[part] >> shift) & mask).view(np.int64)]
            rows[asked[part]] = candidates  # those of another text are found in a later round
            found = given[candidates] == theirs[part]
            taken[np.where(found, candidates, nowhere)] = True
            missed.append(asked[part][np.flatnonzero(~found)])
        asked = np.concatenate(missed) if missed else asked
        if not len(asked):
            break
        left = left[np.flatnonzero(~taken[left])]
        if len(left) != len(asked):  # a text is wanted twice
            return None
    return rows.astype(np.intp) if not len(asked) and taken[:nowhere].all() else None
