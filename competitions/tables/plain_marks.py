"""Tell that the quotes and carriage returns of a CSV file change nothing: each cell is what is left without them."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from competitions.tables.csv_blocks import PART, places_of

_COMMA, _NEWLINE, _RETURN, _QUOTE = b',\n\r"'


def are_plain(text: bytes | bytearray, end: int) -> bool:
    r"""Whether rows could be read without their quotes and carriage returns, and are the same rows to every parser.

    Quotes then stand around whole cells, in which there is no comma, quote or line end, and there is a carriage return
    before every line feed and nowhere else, or none at all.

    Args:
        text: rows, of which a line feed ends the last.
        end: where it does.

    >>> rows = [b'"a",1\r\n"b",2\r\n', b'"a,b",1\n', b'a"b,1\n', b"a,1\r\nb,2\n"]
    >>> [are_plain(each, len(each)) for each in rows]
    [True, False, False, False]
    """
    if text.find(b"\0", 0, end) >= 0:
        return False
    characters, returns = np.frombuffer(text, np.uint8, end), text.find(b"\r", 0, end) >= 0
    if returns:
        ends = places_of(characters, _NEWLINE)
        if (characters[ends - 1] != _RETURN).any() or len(places_of(characters, _RETURN)) != len(ends):
            return False
    if text.find(b'"', 0, end) < 0 or _all_are_quoted(characters, _RETURN if returns else _NEWLINE):
        return True
    return _some_are_quoted(characters[characters != _RETURN] if returns else characters)


def _all_are_quoted(characters: NDArray[np.uint8], line_end: int) -> bool:
    """Whether there are quotes at the start and the end of each cell, and nowhere else. `line_end` is its first byte.

    A cell has at most one quote that follows a comma or a line end, and one that precedes the next. If there are as
    many of each as there are cells, and no quote is both, each cell has two.
    """
    cells = opening = closing = quotes = 0
    for start in range(0, len(characters), PART):
        part = characters[start : start + PART]
        is_quote, comma = part == _QUOTE, part == _COMMA
        first, last = comma | (part == _NEWLINE), comma | (part == line_end)
        cells += int(np.count_nonzero(first))
        before = not start or characters[start - 1] in (_COMMA, _NEWLINE)
        after = characters[min(start + PART, len(characters) - 1)] in (_COMMA, line_end)
        opens, closes = is_quote.copy(), is_quote.copy()
        opens[1:] &= first[:-1]
        opens[0] &= before
        closes[:-1] &= last[1:]
        closes[-1] &= after
        if (opens & closes).any():
            return False
        opening += int(np.count_nonzero(opens))
        closing += int(np.count_nonzero(closes))
        quotes += int(np.count_nonzero(is_quote))
        if cells > opening:  # some are not quoted
            return False
    return cells == opening == closing and quotes == opening + closing


def _some_are_quoted(characters: NDArray[np.uint8]) -> bool:
    """Whether each two quotes are at the start and the end of one cell. There are no carriage returns."""
    marks = places_of(characters, _QUOTE, _COMMA, _NEWLINE)
    is_quote = characters[marks] == _QUOTE
    quotes = np.flatnonzero(is_quote)
    if len(quotes) % 2:
        return False
    opening, closing = quotes[::2], quotes[1::2]
    if (closing != opening + 1).any() or (marks[closing + 1] != marks[closing] + 1).any():
        return False
    if opening[0] == 0:
        if marks[0]:
            return False
        opening = opening[1:]
    return not is_quote[opening - 1].any() and bool((marks[opening - 1] == marks[opening] - 1).all())
