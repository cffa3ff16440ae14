"""Keep parsed answers as Arrow files, so that the next process maps them into memory instead of parsing them."""

from __future__ import annotations

import contextlib
import os
import secrets
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pyarrow as pa

WORTH = 1 << 18
"""Bytes of a file of answers from which its parsed form is kept. Smaller ones are parsed in a few milliseconds."""
MOST = 4 << 30
"""Bytes of the files in a folder. Those that were used least recently are removed first."""
SUFFIX = ".arrow"
_SOURCE = b"answers"  # key of the size in bytes and the time in nanoseconds of the file that was parsed


def read_table(path: Path, wanted: tuple[str, ...] | None, kept: Path) -> pa.Table | None:
    """As `competitions.tables.columns.read_table`, from the file `kept` if an earlier call wrote it.

    Args:
        path: the answers.
        wanted: columns to read; None for all.
        kept: an Arrow file. Its name has to identify the content of the answers, the columns, and the code that reads
            them. Only its owner may read it. If it is damaged, was made of a file of another size or time, or cannot be
            written, it is as good as none.

    Raises:
        OSError: the answers cannot be read.
    """
    from competitions.tables import columns  # which loads pandas and Arrow

    stat = path.stat()
    if stat.st_size < WORTH:
        return columns.read_table(path, wanted)
    source = {_SOURCE: f"{stat.st_size} {stat.st_mtime_ns}".encode()}
    table = _mapped(kept, source)
    if table is None:
        table = columns.read_table(path, wanted)
        if table is not None:
            with contextlib.suppress(OSError):
                _write(table.replace_schema_metadata(source), kept)
    return table


def _mapped(kept: Path, source: dict[bytes, bytes]) -> pa.Table | None:
    import pyarrow as pa

    try:
        with pa.memory_map(str(kept)) as file:
            table = pa.ipc.open_file(file).read_all()
        os.utime(kept)
    except (OSError, pa.ArrowException):
        return None
    return table if table.schema.metadata == source else None


def _write(table: pa.Table, kept: Path) -> None:
    import pyarrow as pa

    kept.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    draft = kept.with_name(f".{secrets.token_hex(6)}.partial")
    try:
        opened = os.open(draft, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600)
        with os.fdopen(opened, "wb") as file, pa.ipc.new_file(file, table.schema) as writer:
            writer.write_table(table)
        draft.replace(kept)
    finally:
        draft.unlink(missing_ok=True)
    _make_room(kept.parent)


def _make_room(folder: Path) -> None:
    found = []
    for path in folder.glob(f"*{SUFFIX}"):
        with contextlib.suppress(FileNotFoundError):
            stat = path.stat()
            found.append((stat.st_mtime_ns, stat.st_size, path))
    total = sum(size for _, size, _ in found)
    for _, size, path in sorted(found):
        if total <= MOST:
            return
        path.unlink(missing_ok=True)
        total -= size
