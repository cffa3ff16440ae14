"""CSV tables that are too large for a data frame, and writing their rows in any order.

A `BigTable` reads the CSV in blocks and formats every row as ``to_csv(index=False)`` would after one ``read_csv`` of
the whole file. It keeps the text in a scratch file and the length of each row in memory. Rows are then written by
number, in any order. Scratch files are in the system's temporary directory; set ``TMPDIR`` if that is too small.

Memory: 6 bytes per row, 4 more per requested row, and some 400 MB. Scratch: twice the size of the table.
"""

from __future__ import annotations

import io
import sys
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import IO, Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from pandas.api.types import union_categoricals

from common.concurrency import WORKERS, ordered_map
from competitions.errors import DownloadError
from competitions.preparing.declaration import Content
from competitions.preparing.download import Download
from competitions.preparing.tables.scratch_rows import Rows, ScratchRows
from competitions.tables import csv_blocks, csv_text
from competitions.tables.arrays import offsets_of, text_of
from competitions.tables.type_inference import Types, inference_rows

_MAX_FORMATTED_BYTES = 4 << 20  # bytes of rows that are formatted together
_MAX_WAITING_BYTES = 32 << 20  # bytes of text waiting to be formatted
_MAX_BLOCK_BYTES = 1 << 30  # bytes of a block of rows


class BigTable:
    """The formatted rows of the CSV `name`. `options` are passed to ``read_csv`` (dtype, keep_default_na, ...).

    The columns in `keep`, which are needed to draw the test set, stay in memory with their types as `kept`. Their texts
    are categories, because most are repeated.
    """

    def __init__(self, download: Download, name: str, *, keep: Sequence[str] = (), **options: Any) -> None:
        options = {"float_precision": "round_trip", **options}
        self._formatted = formatted = _Formatted(download, name, list(keep), options)
        self.columns = formatted.columns
        self.kept = formatted.kept
        self._scratch = formatted.scratch

    def __len__(self) -> int:
        return len(self._scratch)

    @property
    def rows(self) -> Rows:
        """The numbers of all rows in file order, from 0. Test sets are drawn from them."""
        return np.arange(len(self), dtype=np.int32 if len(self) < 1 << 31 else np.int64)

    def content(self, rows: Rows) -> Content:
        """The header and the rows with these numbers, in the given order, as ``to_csv(index=False)`` writes them."""
        return Content(lambda: self._pieces(rows))

    def frames(self, rows: Rows) -> Iterator[pd.DataFrame]:
        """Yield the rows as frames of bounded size.

        Cells are text as formatted (NaN for missing ones), so that writing them gives the same bytes again.
        """
        return self._scratch.each(rows, self._read)

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
        """The rows as one frame, for selections that fit in memory."""
        return pd.concat([pd.DataFrame(columns=self.columns, dtype=object), *self.frames(rows)], ignore_index=True)

    def _pieces(self, rows: Rows) -> Iterator[bytes]:
        yield self._formatted.header
        yield from self._scratch.each(rows, bytes)


class _Formatted:
    """A table as text in a scratch file that does not change any more."""

    def __init__(self, download: Download, name: str, keep: list[str], options: dict[str, Any]) -> None:
        self._download, self._name, self._options = download, name, options
        empty = download.read_csv(name, **{**options, "nrows": 0})
        self.columns: list[str] = list(empty.columns)
        self.header = _csv(empty, header=True)
        self.block_rows = inference_rows(len(self.columns))
        plan = csv_blocks.Plan.of(self.columns, options)
        types, max_bytes = Types(), _MAX_FORMATTED_BYTES
        settled = False
        while not settled:  # repeated only if a later block changed a column's type, which makes earlier rows wrong
            try:
                settled = self._format(types, keep, plan, max_bytes)
            except _Undecided:
                types, max_bytes = Types(), sys.maxsize
            except csv_blocks.UnsupportedCsv:
                plan, types = None, Types()

    def _format(self, types: Types, keep: list[str], plan: csv_blocks.Plan | None, max_bytes: int) -> bool:
        """Fill the scratch file. Returns False if a block after the first had new types."""
        self.scratch = ScratchRows()
        kept_columns: list[pd.DataFrame] = []
        settled = True
        known_types = types.copy()
        dtypes_of_blocks: dict[int, list[Any]] = {}
        for block in self._formatted(known_types, keep, plan, max_bytes):
            dtypes = list(block.example.dtypes)
            if dtypes_of_blocks.setdefault(block.number, dtypes) != dtypes:
                raise _Undecided
            settled &= not types.learn(block.example) or not kept_columns
            kept_columns.append(_compact(block.kept))
            self.scratch.append(block.text, block.lengths)
        self.scratch.complete()
        self.kept = pd.DataFrame({name: _together([frame[name] for frame in kept_columns]) for name in keep})
        return settled

    def _formatted(
        self, types: Types, keep: list[str], plan: csv_blocks.Plan | None, max_bytes: int
    ) -> Iterator[_Block]:
        """Yield the blocks of the file in order, or pieces of them. A few are parsed and formatted concurrently."""
        with self._download.open_file(self._name) as file, ThreadPoolExecutor(WORKERS) as pool:
            if plan:
                pieces = csv_blocks.cut(file, self.block_rows, max_bytes)
                work = partial(self._parsed, plan, types=types, keep=keep)

                def pieces_ahead(piece: csv_blocks.BlockPiece) -> int:
                    return min(WORKERS, _MAX_WAITING_BYTES // len(piece.text) + 1)

                yield from ordered_map(pool, work, pieces, pieces_ahead)
            else:
                frames = enumerate(self._frames(file))
                yield from ordered_map(pool, lambda numbered: _block_of(*numbered, types, keep), frames, WORKERS)

    def _frames(self, file: IO[bytes]) -> Iterator[pd.DataFrame]:
        bounded = _Bounded(file, self._name)
        with pd.read_csv(io.BufferedReader(bounded), chunksize=self.block_rows, **self._options) as blocks:
            for block in blocks:
                bounded.read_since = 0
                yield block

    def _parsed(self, plan: csv_blocks.Plan, piece: csv_blocks.BlockPiece, types: Types, keep: list[str]) -> _Block:
        columns = csv_blocks.parse(piece.text, plan)
        if columns is not None and not types.mixed:
            # Without quotes no cell has a character that is quoted: such a character would end the cell or the row.
            rows = csv_text.rows_of_arrays(list(columns.values()), plain=b'"' not in piece.text)
            if rows is not None:
                example = csv_blocks.frame({name: column[:1] for name, column in columns.items()})
                kept_columns = csv_blocks.frame({name: columns[name] for name in keep})
                return _Block(piece.block, example, kept_columns, text_of(rows), np.diff(offsets_of(rows)))
        if columns is not None:
            return _block_of(piece.block, csv_blocks.frame(columns), types, keep)
        if not piece.whole:
            raise _Undecided
        options = {**self._options, "header": None, "names": self.columns}
        return _block_of(piece.block, pd.read_csv(io.BytesIO(piece.text), **options), types, keep)


class _Undecided(Exception):
    """The types of a block's columns do not follow from those of its pieces, so the block has to be parsed whole."""


class _Bounded(io.RawIOBase):
    """A file of which pandas cannot read more than `_MAX_BLOCK_BYTES` bytes for one block of rows.

    After a quote that is never closed, pandas would read the rest of the file into memory.
    """

    def __init__(self, file: IO[bytes], name: str) -> None:
        self._file, self._name, self.read_since = file, name, 0

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        data = self._file.read(len(buffer))
        buffer[: len(data)] = data
        self.read_since += len(data)
        if self.read_since > _MAX_BLOCK_BYTES:
            raise DownloadError(
                f"{self._name} has rows of more than {_MAX_BLOCK_BYTES >> 20:,} MB, or a quote that is never closed; "
                "download it again"
            )
        return len(data)


class _Block(NamedTuple):
    """A formatted block of rows, or a piece of one.

    Its number, a row with its types, the kept columns, the text, and the length of each row.
    """

    number: int
    example: pd.DataFrame
    kept: pd.DataFrame
    text: bytes | memoryview
    lengths: NDArray[np.int32]


def _block_of(number: int, frame: pd.DataFrame, types: Types, keep: list[str]) -> _Block:
    cast = types.cast(frame)
    text = _csv(cast)
    return _Block(number, frame.iloc[:1], cast[keep], text, _lengths(text))


def _csv(frame: pd.DataFrame, *, header: bool = False) -> bytes:
    return csv_text.text(frame, {"index": False, "header": header})


def _lengths(text: bytes) -> NDArray[np.int32]:
    """The length of each row of a CSV."""
    return np.diff(csv_blocks.row_ends(text), prepend=0).astype(np.int32)


def _compact(frame: pd.DataFrame) -> pd.DataFrame:
    return frame.astype({name: "category" for name in frame if frame[name].dtype == object})


def _together(parts: list[pd.Series]) -> pd.Series:
    if all(isinstance(part.dtype, pd.CategoricalDtype) for part in parts):
        return pd.Series(union_categoricals(parts))
    return pd.concat(parts, ignore_index=True)
