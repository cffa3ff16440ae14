"""JSON lines logs: append-only files with one JSON object per line."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from common import plain_json
from common.plain_json import parse_json

MARGIN = 64 * 1024
"""Bytes that a log keeps free for records of what is under way, when it is asked whether it is full."""


class JsonLinesLog:
    """An append-only JSON lines file of limited size. Thread-safe, and readable after a kill at any moment."""

    def __init__(self, path: Path, max_bytes: int) -> None:
        """Continue an existing file, or create it with the first record.

        Args:
            path: the file; its folder exists.
            max_bytes: size limit. The first record that does not fit is replaced by a note; later records are dropped.
        """
        self.path = path
        self._max = max_bytes
        self._lock = threading.Lock()
        self._size = path.stat().st_size if path.exists() else 0
        self._torn = self._size > 0 and _last_byte(path) != b"\n"

    @property
    def full(self) -> bool:
        """Whether there may be no room for further records."""
        return self._size + MARGIN > self._max

    def clear(self) -> None:
        """Remove all records."""
        with self._lock:
            if self._size:
                os.truncate(self.path, 0)
            self._size, self._torn = 0, False

    def append(self, record: dict[str, Any], *, durable: bool = False) -> None:
        """Write one line. The line is in the file when the call returns, and with `durable` on the disk."""
        with self._lock:
            if self._size > self._max:
                return
            line = plain_json.dumps(record, ensure_ascii=False).encode("utf-8", "replace") + b"\n"
            if self._size + len(line) > self._max:
                line = b'{"note": "this log is full; later records are left out"}\n'
                self._size = self._max
            descriptor = os.open(self.path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
            try:
                os.write(descriptor, b"\n" + line if self._torn else line)
                if durable:
                    os.fsync(descriptor)
            finally:
                os.close(descriptor)
            self._size, self._torn = self._size + len(line), False

    def records(self) -> Iterator[dict[str, Any]]:
        """Yield the complete records in the order in which they were written; none if there is no file."""
        if self.path.exists():
            yield from parse(self.path.read_bytes())


def parse(content: bytes) -> Iterator[dict[str, Any]]:
    """Yield the records in a log's content, without truncated lines and the note that the log is full."""
    for line in content.splitlines():
        try:
            record = parse_json(line)
        except ValueError:
            continue
        if isinstance(record, dict) and "note" not in record:
            yield record


def _last_byte(path: Path) -> bytes:
    with path.open("rb") as file:
        file.seek(-1, os.SEEK_END)
        return file.read()
