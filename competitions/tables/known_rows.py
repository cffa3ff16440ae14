"""Leave out rows of a CSV file before they are parsed: those whose first cell is none of the known texts.

Of a row that is left out only its commas are looked at, so that a file of which few rows count is read several times
faster than it is parsed, and takes the memory of these rows.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import accumulate
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from competitions.tables.arrays import WORD, offsets_of, words_of
from competitions.tables.csv_blocks import MISSING, Unusual, characters_of, count_of, is_text, places_of

if TYPE_CHECKING:
    import pyarrow as pa

_SLOTS = 16  # per text, so that few others are kept by chance
_NEWLINE, _COMMA = b"\n,"
_SPREAD = np.uint64(0xFF51AFD7ED558CCD)


class KnownRows:
    """The texts that the column `name` holds where a row counts.

    Rows are chosen by a hash of the first and the last bytes of the text: all rows with a known text are kept, and one
    of several hundred others.
    """

    def __init__(self, name: str, texts: pa.Array) -> None:
        self.name = name
        ends = offsets_of(texts).astype(np.int64)
        ends -= ends[0]
        self._bits = max(10, (_SLOTS * len(texts)).bit_length())
        self._flags = np.zeros((2, 1 << self._bits), dtype=bool)  # the second ones by other bits of the hash
        long = np.flatnonzero(np.diff(ends) >= WORD)
        if len(long):
            hashes = _hashes(characters_of(texts), ends[long], ends[long + 1])
            self._flags[0][self._slots(hashes, 0)] = True
            self._flags[1][self._slots(hashes, 1)] = True

    def rows_of(self, text: bytearray | bytes, end: int, columns: int, most: int) -> tuple[bytes, int]:
        """The rows among the first `end` bytes that may count, and the first and the last one; and their number.

        Args:
            text: rows without quotes, carriage returns and null characters.
            end: where the last row ends.
            columns: how many cells each row has. Raises `Unusual` if one has fewer or more, or begins with a blank.
            most: rows that `text` may have. Raises `Unusual` if there are more.
        """
        characters = np.frombuffer(text, np.uint8, end)
        stops = places_of(characters, _NEWLINE)
        if len(stops) > most:
            raise Unusual("many short rows")
        starts = np.append(0, stops[:-1] + 1)
        first = _first_commas(text, characters, starts, stops, columns)
        begin = characters[starts]
        if ((begin == ord(" ")) | (begin == ord("\t"))).any():
            raise Unusual("rows that begin with a blank")
        kept = first - starts < WORD  # too short to be told from others
        long = np.flatnonzero(~kept)
        if len(long):
            kept[long] = self._may_be_known(_hashes(characters, starts[long], first[long]))
        kept[[0, -1]] = True
        begins, ends = starts[kept].tolist(), (stops[kept] + 1).tolist()
        # Copies of the rows: the garbage collector counts views.
        return b"".join([text[start:stop] for start, stop in zip(begins, ends, strict=True)]), len(begins)

    def _may_be_known(self, hashes: NDArray[np.uint64]) -> NDArray[np.bool_]:
        """Whether the texts with these hashes, of at least 8 bytes, may be known."""
        found: NDArray[np.bool_] = self._flags[0][self._slots(hashes, 0)]
        likely = np.flatnonzero(found)
        found[likely] = self._flags[1][self._slots(hashes[likely], 1)]
        return found

    def _slots(self, hashes: NDArray[np.uint64], number: int) -> NDArray[np.uint64]:
        return (hashes << np.uint64(self._bits * number)) >> np.uint64(64 - self._bits)


def _hashes(characters: NDArray[np.uint8], starts: NDArray[np.int64], stops: NDArray[np.int64]) -> NDArray[np.uint64]:
    """A hash of each text of at least 8 bytes."""
    words = words_of(characters)
    mixed = words[starts] * _SPREAD
    mixed ^= words[stops - WORD] + (mixed >> np.uint64(32))
    mixed *= _SPREAD
    return mixed


def _first_commas(
    text: bytes | bytearray,
    characters: NDArray[np.uint8],
    starts: NDArray[np.int64],
    stops: NDArray[np.int64],
    columns: int,
) -> NDArray[np.int64]:
    """Where the first comma of each row is. Raises `Unusual` unless each row has one less than there are columns."""
    if columns == 2:
        same_place = starts + max(text.find(b",", 0, len(characters)), 0)  # as ids often have one length
        if same_place[-1] < len(characters) and (same_place < stops).all() and (characters[same_place] == _COMMA).all():
            count = count_of(text, _COMMA, 0, len(characters))
            if count == len(starts):  # so that each row has one
                return same_place
    commas = places_of(characters, _COMMA)
    if len(commas) != len(stops) * (columns - 1):
        raise Unusual("too few or too many cells")
    first, last = commas[:: columns - 1], commas[columns - 2 :: columns - 1]
    if (first < starts).any() or (last > stops).any():
        raise Unusual("rows with too few or too many cells")
    return first


def require_text_at_ends(columns: Mapping[str, pa.Array], parts: Sequence[int]) -> None:
    """Raise `Unusual` unless the first and the last cell of each part are text for any parser, and not missing.

    pandas infers the type of a column for some rows at a time. If each piece of a file, of no more rows, begins and
    ends with text, every cell of the column is text, whatever the rows hold that were left out.

    Args:
        columns: the cells of the rows that were kept.
        parts: how many rows were kept of each piece.
    """
    ends = list(accumulate(parts))
    places = [place for end, count in zip(ends, parts, strict=True) for place in (end - count, end - 1)]
    for column in columns.values():
        cells = column.take(places).to_pylist() if places else []
        if any(not cell or cell in MISSING or not is_text([cell]) for cell in cells):
            raise Unusual("a column that may have other types in rows that are left out")
