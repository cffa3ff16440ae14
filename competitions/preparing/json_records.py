"""JSON files that consist of one list of records (objects with the same fields)."""

from __future__ import annotations

import io
import json
from collections.abc import Iterable, Sequence
from typing import Any

from competitions.errors import DownloadError
from competitions.preparing.download import Download

Record = dict[str, Any]
_CHUNK_CHARACTERS = 1 << 20
_MAX_RECORD_CHARACTERS = 64 << 20  # the first record must end within them


def read_records(download: Download, name: str) -> list[Record]:
    """The records in `name`. Raises `DownloadError` if their fields differ."""
    records: list[Record] = download.read_json(name)
    if any(record.keys() != records[0].keys() for record in records):
        raise DownloadError(f"{name} has records with different fields; download it again")
    return records


def first_record(download: Download, name: str) -> Record:
    """The first record in `name`. Little more is read: this suits large files of which only the fields are needed."""
    return _first_record(download, name)


def _first_record(download: Download, name: str) -> Record:
    for _, file in download.stream([name]):
        text, reader = "", io.TextIOWrapper(file, "utf-8")
        while len(text) < _MAX_RECORD_CHARACTERS and (chunk := reader.read(_CHUNK_CHARACTERS)):
            text += chunk
            try:
                record: Record = json.JSONDecoder().raw_decode(text, text.index("{"))[0]
            except ValueError:  # not complete yet
                continue
            return record
    raise DownloadError(f"the download has no record in {name!r}; is it complete?")


def only(records: Iterable[Record], fields: Sequence[str]) -> list[Record]:
    """The records reduced to `fields`, in that order.

    >>> only([{"a": 1, "b": 2, "c": 3}], ["c", "a"])
    [{'c': 3, 'a': 1}]
    """
    return [{field: record[field] for field in fields} for record in records]
