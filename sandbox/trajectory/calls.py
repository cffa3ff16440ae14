"""The calls of a run to language models: its journal, with the messages of its transcripts where they were kept."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from sandbox.trajectory.messages import Message, plain
from sandbox.trajectory.requests import messages_of
from sandbox.trajectory.responses import message_of


@dataclass(frozen=True)
class Call:
    """A request to a language model, as the gateway has logged it."""

    id: str
    model: str
    started_at: datetime
    seconds: float
    status: str
    message: str | None
    """The reason for a missing answer."""
    input_tokens: int
    """Tokens of the whole prompt, including those from a cache."""
    cached_tokens: int
    output_tokens: int
    cost_usd: float | None
    asked: tuple[Message, ...] | None = None
    """The messages of the request; None if no transcript was kept."""
    answer: Message | None = None

    @property
    def ended_at(self) -> datetime:
        """The time at which the answer was complete."""
        return self.started_at + timedelta(seconds=self.seconds)

    @property
    def refused(self) -> bool:
        """Whether the gateway did not send it."""
        return self.status == "refused"


def calls_of(journal: Iterable[bytes], transcripts: Iterable[bytes] = ()) -> Iterator[Call]:
    """Yield the calls in the order in which they ended.

    Args:
        journal: lines of `gateway.jsonl`.
        transcripts: lines of `transcripts.jsonl`, in the same order; some of the calls, or none, have one. They are
            read one at a time, as each contains the whole conversation.
    """
    transcript_records = _records(transcripts)
    transcript = next(transcript_records, None)
    for entry in _records(journal):
        if transcript is not None and transcript.get("id") == entry.get("id"):
            yield _call(entry, transcript)
            transcript = next(transcript_records, None)
        else:
            yield _call(entry, None)


def _records(lines: Iterable[bytes]) -> Iterator[dict[str, Any]]:
    """The records of a log in JSON lines; damaged lines, as a crash leaves them, are left out."""
    for line in lines:
        try:
            record = json.loads(line)
        except (ValueError, RecursionError):
            continue
        if isinstance(record, dict):
            yield record


def _call(entry: dict[str, Any], transcript: dict[str, Any] | None) -> Call:
    asked = answer = None
    if transcript is not None:
        asked = tuple(messages_of(transcript.get("request")))
        answer = message_of(transcript.get("response"))
    cost = entry.get("cost_usd")
    return Call(
        id=str(entry.get("id") or ""),
        model=str(plain(entry.get("model") or "unknown")),
        started_at=_moment(entry.get("started_at")),
        seconds=float(entry.get("latency_seconds") or 0.0),
        status=str(entry.get("status") or "cut"),
        message=None if entry.get("message") is None else str(plain(entry["message"])),
        input_tokens=int(entry.get("input_tokens") or 0),
        cached_tokens=int(entry.get("cached_tokens") or 0),
        output_tokens=int(entry.get("output_tokens") or 0),
        cost_usd=None if cost is None else float(cost),
        asked=asked,
        answer=answer,
    )


def _moment(value: Any) -> datetime:
    try:
        moment = datetime.fromisoformat(str(value))
    except ValueError:
        return datetime.fromtimestamp(0, UTC)
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)
