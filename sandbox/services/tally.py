"""Sums over the journals of a run's services, read as they grow, whichever process writes them."""

from __future__ import annotations

import contextlib
import threading
from collections import Counter
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from common.jsonlines import parse
from sandbox.validation.endpoints import ENDPOINTS

COUNTED = {**{endpoint.journal: name for name, endpoint in ENDPOINTS.items()}, "gateway.jsonl": ""}
"""The logs whose records are counted, in a run's folder for records: the endpoint of the validation service of each."""


@dataclass
class Sums:
    """The amounts that a run has used."""

    calls: Counter[str] = field(default_factory=Counter)
    """Number of calls of each endpoint of the validation service."""
    requests: int = 0
    tokens: int = 0
    dollars: float = 0.0
    unpriced: int = 0
    """Number of requests whose cost is unknown."""


def sums_since(folder: Path, since: str) -> Sums:
    """The amounts that a run has used from an ISO time on."""
    sums = Sums()
    for name, endpoint in COUNTED.items():
        with contextlib.suppress(FileNotFoundError):
            content = (folder / name).read_bytes()
            for record in parse(content[: content.rfind(b"\n") + 1]):
                if str(record.get("time") or record.get("started_at")) >= since:
                    _add(sums, record, endpoint)
    return sums


def _add(sums: Sums, record: dict[str, Any], endpoint: str) -> None:
    if endpoint:
        sums.calls[endpoint] += record["verdict"] != "refused"
    elif record.get("status") != "refused":
        sums.requests += 1
        sums.tokens += record["input_tokens"] + record["output_tokens"]
        sums.dollars += record["cost_usd"] or 0.0
        sums.unpriced += record["cost_usd"] is None


class Tally:
    """The sums of a run. Thread-safe; a call reads only what was written since the last one."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._sums = Sums()
        self._read: dict[str, int] = {}
        self._lock = threading.Lock()

    def sums(self) -> Sums:
        """The sums so far."""
        with self._lock:
            for name, endpoint in COUNTED.items():
                for record in self._new(name):
                    _add(self._sums, record, endpoint)
            return replace(self._sums, calls=self._sums.calls.copy())

    def _new(self, name: str) -> list[dict[str, Any]]:
        try:
            with (self._folder / name).open("rb") as file:
                file.seek(self._read.get(name, 0))
                content = file.read()
        except FileNotFoundError:
            return []
        complete = content[: content.rfind(b"\n") + 1]
        self._read[name] = self._read.get(name, 0) + len(complete)
        return list(parse(complete))
