"""The events of a run for an Inspect log: calls of language models, and graded snapshots.

The fields are those of inspect_ai's `log/_log.py` and `event/` as of version 0.3.285.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from sandbox.trajectory.calls import Call
from sandbox.trajectory.messages import Message


@dataclass
class Usage:
    """Sums of tokens and cost by model, as Inspect counts them: its input tokens do not include cached ones."""

    by_model: dict[str, dict[str, Any]] = field(default_factory=dict)

    def add(self, model: str, usage: dict[str, Any]) -> None:
        """Add the usage of a call, or of a run. The cost of a sum is unknown as soon as that of one part is."""
        if model not in self.by_model:
            self.by_model[model] = dict(usage)
            return
        total = self.by_model[model]
        priced = "total_cost" in total and "total_cost" in usage
        for name in ("input_tokens", "output_tokens", "total_tokens", "input_tokens_cache_read"):
            total[name] += usage[name]
        if priced:
            total["total_cost"] += usage["total_cost"]
        else:
            total.pop("total_cost", None)

    def main_model(self) -> str | None:
        """The model that wrote most; None without calls."""
        written = {name: usage["output_tokens"] for name, usage in self.by_model.items()}
        return max(written, key=lambda name: written[name]) if written else None


class Transcript:
    """The model events of a run. A message that several requests share is stored once, and referred to by position."""

    def __init__(self, began: datetime) -> None:
        self.events: list[dict[str, Any]] = []
        self.pool: list[dict[str, Any]] = []
        self.usage = Usage()
        self.conversation: list[dict[str, Any]] = []
        """The messages of the last request with a transcript, and its answer."""
        self.output: dict[str, Any] = {}
        self._began = began
        self._positions: dict[bytes, int] = {}
        self._names: dict[str, str] = {}
        """Names of tools, by the id of the call."""

    def add(self, call: Call) -> None:
        """Add a request to a language model, also one that was refused."""
        usage = usage_of(call)
        self.usage.add(call.model, usage)
        positions = [self._position(message) for message in call.asked or ()]
        message = call.answer or Message("assistant")
        answer = {**self._message(message), "model": call.model}
        output = {
            "model": call.model,
            "choices": [{"message": answer, "stop_reason": "tool_calls" if message.calls else "stop"}]
            if call.answer is not None
            else [],
            "completion": message.text,
            "usage": usage,
            "time": call.seconds,
        }
        event = {
            "event": "model",
            "uuid": call.id,
            "timestamp": call.started_at.isoformat(),
            "working_start": max(0.0, (call.started_at - self._began).total_seconds()),
            "model": call.model,
            "input": [],
            "input_refs": _ranges(positions),
            "tools": [],
            "tool_choice": "auto",
            "config": {},
            "output": output,
            "completed": call.ended_at.isoformat(),
            "working_time": call.seconds,
            "metadata": {"status": call.status},
        }
        if call.status != "ok":
            event["error"] = call.message or call.status
        self.events.append(event)
        if call.asked is not None:
            self.conversation = [*(self.pool[position] for position in positions), *([answer] if call.answer else [])]
        if call.answer is not None:
            self.output = output

    def _position(self, message: Message) -> int:
        digest = message.digest
        if digest not in self._positions:
            self._positions[digest] = len(self.pool)
            self.pool.append(self._message(message))
        return self._positions[digest]

    def _message(self, message: Message) -> dict[str, Any]:
        if message.role == "tool":
            name = self._names.get(message.call_id)
            call = {"tool_call_id": message.call_id, **({"function": name} if name else {})}
            return {"role": "tool", "content": message.text, **call}
        content: Any = message.text
        if message.reasoning:
            content = [{"type": "reasoning", "reasoning": message.reasoning}, {"type": "text", "text": message.text}]
        entry: dict[str, Any] = {"role": message.role, "content": content}
        if message.calls:
            self._names.update({call.id: call.name for call in message.calls})
            entry["tool_calls"] = [
                {"id": call.id, "function": call.name, "arguments": call.arguments} for call in message.calls
            ]
        return entry


def usage_of(call: Call) -> dict[str, Any]:
    """Tokens and cost of a call; the cost is left out where it is not known."""
    return {
        "input_tokens": call.input_tokens - call.cached_tokens,
        "output_tokens": call.output_tokens,
        "total_tokens": call.input_tokens + call.output_tokens,
        "input_tokens_cache_read": call.cached_tokens,
        **({} if call.cost_usd is None else {"total_cost": call.cost_usd}),
    }


def _ranges(positions: list[int]) -> list[list[int]]:
    """Positions as ranges (start, end): successive ones are one range.

    >>> _ranges([0, 1, 2, 7, 4])
    [[0, 3], [7, 8], [4, 5]]
    """
    ranges: list[list[int]] = []
    for position in positions:
        if ranges and ranges[-1][1] == position:
            ranges[-1][1] = position + 1
        else:
            ranges.append([position, position + 1])
    return ranges
