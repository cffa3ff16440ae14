"""Cut a CSV file into pieces that end where a row ends."""

from __future__ import annotations

import os
from collections.abc import Iterator
from queue import Empty, SimpleQueue
from typing import IO, NamedTuple

from competitions.tables.csv_blocks import UnsupportedCsv, count_of

PIECE = 2 << 20
"""Approximate size of a piece in bytes."""
_MAX_ROW_BYTES = 64 << 20  # a row with more bytes is taken for the effect of a stray quote
_MAX_TRIED_LINES = 10_000  # line ends looked at to find the end of the last row of a piece


class Piece(NamedTuple):
    """Whole rows of a file: `text` up to `end`. What follows belongs to the next piece."""

    text: bytes | bytearray
    end: int
    quotes: int = 0
    """How many quotes there are up to `end`: an even number."""


class Buffers:
    """Memory that pieces are read into. It is reused, because the system clears every new page first.

    Args:
        size: bytes of each buffer.
    """

    def __init__(self, size: int) -> None:
        self._size = size
        self._free: SimpleQueue[bytearray] = SimpleQueue()

    def take(self) -> bytearray:
        """A buffer of the usual size that no piece uses."""
        try:
            return self._free.get_nowait()
        except Empty:
            return bytearray(self._size)

    def give_back(self, text: bytes | bytearray) -> None:
        """Take back the text of a piece, if it is a buffer of the usual size."""
        if isinstance(text, bytearray) and len(text) == self._size:
            self._free.put(text)


def from_stream(file: IO[bytes]) -> Iterator[Piece]:
    """Yield the rest of the file in pieces of whole rows. Raises `UnsupportedCsv` for a quote without an end."""
    waiting = b""
    while data := file.read(PIECE):
        text = waiting + data if waiting else data
        end, quotes = _end(text, len(text))
        waiting = text[end:]
        if end:
            yield Piece(text, end, quotes)
        elif len(waiting) > _MAX_ROW_BYTES:
            raise UnsupportedCsv("a row without an end")
    if waiting:
        yield _last(waiting)


def from_file(file: IO[bytes], buffers: Buffers) -> Iterator[Piece]:
    """Like `from_stream`, of a file on disk. What follows the last row of a piece is read twice instead of copied."""
    position, text = file.tell(), buffers.take()
    while size := os.preadv(file.fileno(), [text], position):
        end, quotes = _end(text, size)
        if end:
            yield Piece(text, end, quotes)
            position, text = position + end, buffers.take()
        elif size < len(text):  # the last row, without a line end
            yield _last(bytes(text[:size]))
            return
        elif len(text) > _MAX_ROW_BYTES:
            raise UnsupportedCsv("a row without an end")
        else:
            text = bytearray(4 * len(text))


def _last(row: bytes) -> Piece:
    """The last row, which has no line end."""
    quotes = row.count(b'"')
    if quotes % 2:
        raise UnsupportedCsv("it ends within quotes")
    return Piece(row + b"\n", len(row) + 1, quotes)


def _end(text: bytes | bytearray, size: int) -> tuple[int, int]:
    """Where the last complete row among `size` bytes ends, and the number of quotes before that position.

    A row ends after a line end with an even number of quotes before it.
    """
    end = text.rfind(b"\n", 0, size) + 1
    if text.find(b'"', 0, end) < 0:
        return end, 0
    quotes = count_of(text, ord('"'), 0, end)
    for _ in range(_MAX_TRIED_LINES):
        if not end or quotes % 2 == 0:
            return end, quotes
        previous_end = text.rfind(b"\n", 0, end - 1) + 1
        quotes -= text.count(b'"', previous_end, end)
        end = previous_end
    raise UnsupportedCsv("line ends within quotes")
