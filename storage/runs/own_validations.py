"""The validation scores that an agent reports of its own candidates, in a file of its logs: untrusted content."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Any

from storage.runs.folders import RunFolder
from storage.runs.records import OwnValidationRecord, RunRecord
from storage.store import Store

FILE = "logs/validation.jsonl"
"""Path in the run's folder: an agent writes `validation.jsonl` to LOGS_DIR."""
AIDE_JOURNALS = "logs/*/journal.json"
BYTES, LINES = 4 * 1024**2, 10_000
"""What is read of a file."""
JOURNAL_BYTES = 64 * 1024**2
"""Journals have the code and the output of each step: some 20 kB a step, hundreds of steps a day. A part is no JSON."""
_NAME_CHARACTERS = 200


def read_own_validations(store: Store, folder: RunFolder, run: RunRecord) -> list[OwnValidationRecord]:
    """The candidates that the agent reported, in the order of time; empty without a file.

    For runs of AIDE without the file, its journal is read. Lines that are not candidates are ignored.
    """
    source = run.submission_from or folder.of(run).files_url
    content = _beginning(store, f"{source}/{FILE}")
    if content is not None:
        calls = list(_lines(content))
    elif run.agent.split("@")[0].startswith("aide"):
        urls = store.glob(f"{store.relative(source)}/{AIDE_JOURNALS}")
        calls = [call for url in urls for call in _journal(_beginning(store, url, JOURNAL_BYTES) or b"")]
    else:
        return []
    rows = [_record(call, run) for call in calls]
    return sorted((row for row in rows if row is not None), key=lambda row: row.at_seconds)[:LINES]


def _beginning(store: Store, url: str, max_bytes: int = BYTES) -> bytes | None:
    try:
        content: bytes = store.top.fs.cat_file(store.top.path(store.relative(url)), 0, max_bytes)
    except (FileNotFoundError, IsADirectoryError):
        return None
    return content


def _lines(content: bytes) -> Iterator[Mapping[str, Any]]:
    for line in content.splitlines()[:LINES]:
        try:
            record = json.loads(line)
        except (ValueError, RecursionError):  # not JSON, or a truncated line
            continue
        if isinstance(record, dict):
            yield record


def _journal(content: bytes) -> Iterator[Mapping[str, Any]]:
    """The working programs of an AIDE journal. AIDE submits a program that is better than all earlier ones."""
    try:
        nodes = json.loads(content)["nodes"]
        working = [node for node in nodes if not node["is_buggy"] and _number(node["metric"]["value"]) is not None]
        working.sort(key=lambda node: float(node["ctime"]))
    except (ValueError, OverflowError, RecursionError, KeyError, TypeError):
        return
    best_rank = -math.inf
    for node in working:
        value = float(node["metric"]["value"])
        rank = value if node["metric"].get("maximize") else -value
        yield {"score": value, "time": node["ctime"], "name": f"step {node.get('step')}", "submitted": rank > best_rank}
        best_rank = max(best_rank, rank)


def _record(line: Mapping[str, Any], run: RunRecord) -> OwnValidationRecord | None:
    """The record of a line; None if it has no finite score or a time that is not within the run."""
    score, moment = _number(line.get("score")), _number(line.get("time"))
    at = _number(line.get("at_seconds"))
    if at is None and moment is not None and isinstance(run.started_at, datetime):
        at = moment - run.started_at.timestamp()
    if score is None or at is None or at < 0:
        return None
    name = line.get("name")
    return OwnValidationRecord(
        **run.who,
        at_seconds=at,
        own_score=score,
        submitted=line.get("submitted") is not False,
        name=str(name)[:_NAME_CHARACTERS].encode("utf-8", "replace").decode() if name is not None else None,
    )


def _number(value: Any) -> float | None:
    """A finite number, or None."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    try:
        return float(value) if math.isfinite(value) else None
    except OverflowError:
        return None
