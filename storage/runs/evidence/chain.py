"""A hash chain over the facts about a run, which reveals later changes and where they were made.

The evidence of a run is the file `ledger.jsonl` in its folder, with JSON lines in canonical form. Every entry has its
number (`seq`), the hash of the previous entry (`prev`), and its own hash (`hash`), which is the SHA-256 of the
canonical JSON of all its other fields. The hash of the last entry, the head, identifies the whole file. It is signed
with the operator's key, see `signing`.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from common import plain_json

GENESIS = "0" * 64
"""`prev` of the first entry."""


@dataclass(frozen=True)
class Problem:
    """One inconsistency: its location and its description."""

    where: str
    what: str

    def __str__(self) -> str:
        return f"{self.where}: {self.what}"


def canonical(value: Any) -> bytes:
    r"""The canonical form of a JSON value: sorted keys, no white space, ASCII.

    Raises:
        ValueError: the value contains NaN or infinity.

    >>> canonical({"b": 1, "a": "é"})
    b'{"a":"\\u00e9","b":1}'
    """
    return plain_json.dumps(value, sort_keys=True, separators=(",", ":")).encode()


def fingerprint(value: Any) -> str:
    """SHA-256 of a JSON value in canonical form, as hexadecimal digits."""
    return hashlib.sha256(canonical(value)).hexdigest()


def chain(records: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Chain the records to entries, in the given order."""
    entries: list[dict[str, Any]] = []
    previous = GENESIS
    for place, record in enumerate(records):
        entry = {**record, "seq": place, "prev": previous}
        previous = fingerprint(entry)
        entries.append({**entry, "hash": previous})
    return entries


def to_bytes(entries: Iterable[Mapping[str, Any]]) -> bytes:
    """The content of the evidence file."""
    return b"".join(canonical(entry) + b"\n" for entry in entries)


def head_of(entries: list[dict[str, Any]]) -> str:
    """The hash that identifies all entries."""
    return str(entries[-1]["hash"]) if entries else GENESIS


def check_chain(content: bytes, head: str | None, count: int | None) -> tuple[list[dict[str, Any]], list[Problem]]:
    """Read entries and recompute their hashes.

    Args:
        content: content of the file.
        head: hash of the last entry as recorded elsewhere; None if it is not recorded.
        count: number of entries as recorded elsewhere; None if it is not recorded.

    Returns:
        The entries that can be read, and all problems with their line numbers, from 1.
    """
    problems: list[Problem] = []
    entries: list[dict[str, Any]] = []
    lines = content.split(b"\n")
    if content and lines[-1]:
        problems.append(Problem(f"line {len(lines)}", "is truncated: it has no newline"))
    elif lines[-1] == b"":
        lines.pop()
    previous = GENESIS
    for number, line in enumerate(lines, 1):
        where = f"line {number}"
        entry = _parse(line)
        if entry is None:
            problems.append(Problem(where, "is not an entry of a ledger"))
            previous = ""
            continue
        problems += (Problem(where, what) for what in _wrong(entry, line, number - 1, previous))
        previous = str(entry.get("hash"))
        entries.append(entry)
    if count is not None and len(lines) != count:
        problems.append(Problem("ledger", f"has {len(lines)} entries, {count} were recorded"))
    if head is not None and (previous or "unreadable") != head:
        problems.append(Problem("ledger", f"ends in {previous[:12] or 'an unreadable line'}, recorded is {head[:12]}"))
    return entries, problems


def _parse(line: bytes) -> dict[str, Any] | None:
    try:
        entry = json.loads(line)
    except (ValueError, RecursionError):
        return None
    return entry if isinstance(entry, dict) else None


def _wrong(entry: dict[str, Any], line: bytes, place: int, previous: str) -> list[str]:
    """The problems of one entry. `previous` is empty if the previous line could not be read."""
    own = {name: value for name, value in entry.items() if name != "hash"}
    try:
        found, written = fingerprint(own), canonical(entry)
    except ValueError:
        return ["contains a number that is not valid JSON"]
    problems = []
    if found != entry.get("hash"):
        problems.append(f"was changed: its content hashes to {found[:12]}, not {str(entry.get('hash'))[:12]}")
    elif written != line:
        problems.append("was changed: it is not in canonical form")
    if entry.get("seq") != place:
        problems.append(f"is entry {entry.get('seq')}, expected {place}: lines were removed, added or moved")
    if previous and entry.get("prev") != previous:
        problems.append("does not follow the previous line")
    return problems
