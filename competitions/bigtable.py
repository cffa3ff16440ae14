"""CSV tables too large for a data frame, written out again in any order of rows.

A `BigTable` reads the CSV in blocks, formats every row as ``to_csv(index=False)`` would after one ``read_csv`` of the
whole file, and keeps the text in a scratch file (in the system's temporary directory: set ``TMPDIR`` where that is
small), with the length of each row in memory. Rows are then written by number, in whatever order.

Memory: 4 bytes a row, 8 for each row asked for, and about three times `WINDOW` bytes. Scratch: the size of the table.
"""

from __future__ import annotations

import io
import tempfile
from collections import defaultdict, deque
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
from numpy.typing import NDArray

from competitions import csv_text
from competitions.download import Download
from competitions.preparation import Content

WINDOW = 192 << 20  # bytes put in order at a time; the scratch file is read once for each
_PIECE = 8 << 20
_AHEAD = 2  # blocks waiting to be formatted

Rows = NDArray[np.int64]


class BigTable:
    """The rows of the CSV `name`, formatted. `options` go to ``read_csv`` (dtype, keep_default_na, ...).

    Columns named in `keep` are kept in memory with their types, as `kept`: those that the split depends on.
    """

    def __init__(self, download: Download, name: str, *, keep: Sequence[str] = (), **options: Any) -> None:
        self._download, self._name = download, name
        self._options = {"float_precision": "round_trip", **options}
        empty = download.read_csv(name, **{**self._options, "nrows": 0})
        self.columns: list[str] = list(empty.columns)
        self._header = _csv(empty, header=True)
        self._block_rows = _inference_rows(len(self.columns))
        types = _Types()
        while not self._format(types, list(keep)):
            pass  # a second and last time, now knowing the types of all blocks

    def _format(self, types: _Types, keep: list[str]) -> bool:
        """Fill the scratch file; False if a later block changed a column's type, so that earlier rows are wrong."""
        self._scratch = tempfile.TemporaryFile(prefix="mlebench-table-")  # noqa: SIM115  # lives as long as the table
        self._block_starts = [0]
        lengths: list[NDArray[np.int32]] = []
        kept: list[pd.DataFrame] = []
        settled = True

        def keep_text(text: bytes) -> None:
            lengths.append(np.diff(_row_ends(text), prepend=0).astype(np.int32))
            self._scratch.write(text)
            self._block_starts.append(self._block_starts[-1] + len(text))

        with ThreadPoolExecutor(1) as pool:  # a block is formatted while the next one is parsed
            waiting: deque[Future[bytes]] = deque()
            for number, block in enumerate(self._blocks()):
                settled &= not types.learn(block) or number == 0
                block = types.cast(block)
                kept.append(block[keep])
                waiting.append(pool.submit(_csv, block))
                if len(waiting) > _AHEAD:
                    keep_text(waiting.popleft().result())
            for future in waiting:
                keep_text(future.result())
        self._lengths = np.concatenate(lengths)
        self.kept = pd.concat(kept, ignore_index=True)
        return settled

    def _blocks(self) -> Iterator[pd.DataFrame]:
        with (
            self._download.open_file(self._name) as file,
            pd.read_csv(file, chunksize=self._block_rows, **self._options) as blocks,
        ):
            yield from blocks

    def __len__(self) -> int:
        return len(self._lengths)

    @property
    def rows(self) -> Rows:
        """The numbers of all rows, from 0 in file order: what a split is drawn from."""
        return np.arange(len(self))

    def content(self, rows: Rows) -> Content:
        """The header and the rows of these numbers, in their order, as ``to_csv(index=False)`` writes them."""
        return Content(lambda: self._pieces(rows))

    def frames(self, rows: Rows) -> Iterator[pd.DataFrame]:
        """The rows as frames of bounded size, one after the other.

        Cells are text, exactly as formatted (missing ones NaN), so that writing them gives the same bytes again.
        """
        for part, text in self._windows(rows):
            ends = np.cumsum(self._lengths[part], dtype=np.int64)
            start = 0
            for cut in [*np.searchsorted(ends, np.arange(_PIECE, len(text), _PIECE)), len(ends) - 1]:
                stop = int(ends[cut])
                if stop > start:
                    yield self._read(text[start:stop])
                start = stop

    def _read(self, text: memoryview) -> pd.DataFrame:
        return pd.read_csv(
            io.BytesIO(text),
            names=self.columns,
            dtype=str,
            keep_default_na=False,
            na_values=[""],
            lineterminator="\n",  # a carriage return inside a cell is not quoted
            skip_blank_lines=False,
        )

    def frame(self, rows: Rows) -> pd.DataFrame:
        """`frames` as one: for selections that fit in memory."""
        return pd.concat([pd.DataFrame(columns=self.columns, dtype=object), *self.frames(rows)], ignore_index=True)

    def _pieces(self, rows: Rows) -> Iterator[bytes]:
        yield self._header
        for _, text in self._windows(rows):
            for start in range(0, len(text), _PIECE):
                yield bytes(text[start : start + _PIECE])

    def _windows(self, rows: Rows) -> Iterator[tuple[Rows, memoryview]]:
        ends = np.cumsum(self._lengths[rows], dtype=np.int64)
        total = int(ends[-1]) if len(ends) else 0
        cuts = np.searchsorted(ends, np.arange(WINDOW, total, WINDOW))
        for part in np.split(rows, cuts):
            if len(part):
                yield part, self._gather(part)

    def _gather(self, rows: Rows) -> memoryview:
        """The text of the rows, one after the other: the scratch file is read from front to back, then put in order."""
        order = np.argsort(rows, kind="stable")
        ascending = rows[order]
        block_numbers, firsts = np.unique(ascending // self._block_rows, return_index=True)
        found = pa.concat_arrays(
            self._block(int(number)).take(pa.array(wanted - number * self._block_rows))
            for number, wanted in zip(block_numbers, np.split(ascending, firsts[1:]), strict=True)
        )
        places = np.empty_like(order)
        places[order] = np.arange(len(order))
        return _joined(found.take(pa.array(places)))

    def _block(self, number: int) -> pa.LargeBinaryArray:
        start, stop = self._block_starts[number : number + 2]
        self._scratch.seek(start)
        text = self._scratch.read(stop - start)
        lengths = self._lengths[number * self._block_rows : (number + 1) * self._block_rows]
        offsets = np.concatenate([[0], np.cumsum(lengths, dtype=np.int64)])
        buffers = [None, pa.py_buffer(offsets), pa.py_buffer(text)]
        return pa.LargeBinaryArray.from_buffers(pa.large_binary(), len(lengths), buffers)


class _Types:
    """What the types of all blocks together make of a column, as pandas joins the blocks it infers types in."""

    def __init__(self) -> None:
        self._examples: dict[str, dict[Any, pd.Series]] = defaultdict(dict)

    def learn(self, block: pd.DataFrame) -> bool:
        """True if a column has a type in `block` that it had in no earlier one."""
        new = {name: values[:1] for name, values in block.items() if values.dtype not in self._examples[str(name)]}
        for name, example in new.items():
            self._examples[str(name)][example.dtype] = example
        return bool(new)

    def cast(self, block: pd.DataFrame) -> pd.DataFrame:
        """`block` with the types that its columns have in the whole table."""
        mixed = {name: list(found.values()) for name, found in self._examples.items() if len(found) > 1}
        columns = {name: pd.concat([block[name], *found]).iloc[: len(block)] for name, found in mixed.items()}
        return block.assign(**columns)


def _inference_rows(columns: int) -> int:
    """Rows that pandas' parser infers types over before it goes on (``low_memory``, the default)."""
    limit = 2**20 // columns
    rows = 1
    while rows * 2 < limit:
        rows *= 2
    return rows


def _csv(frame: pd.DataFrame, *, header: bool = False) -> bytes:
    return csv_text.text(frame, {"index": False, "header": header})


def _row_ends(text: bytes) -> NDArray[np.int64]:
    """Where each row of a CSV ends: after the line ends with an even number of quotes before them."""
    characters = np.frombuffer(text, np.uint8)
    ends = np.flatnonzero(characters == ord("\n"))
    quotes = np.flatnonzero(characters == ord('"'))
    return ends[np.searchsorted(quotes, ends) % 2 == 0] + 1


def _joined(rows: pa.LargeBinaryArray) -> memoryview:
    offsets = np.frombuffer(rows.buffers()[1], np.int64)[rows.offset : rows.offset + len(rows) + 1]
    return memoryview(rows.buffers()[2])[offsets[0] : offsets[-1]]
