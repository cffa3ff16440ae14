"""Messages between an agent and a language model, the same whatever API they were sent with."""

from __future__ import annotations

import hashlib
import json
import math
from dataclasses import asdict, dataclass, replace
from typing import Any, Literal

from common import plain_json

Role = Literal["system", "user", "assistant", "tool"]

_DEEPEST = 40


@dataclass(frozen=True)
class ToolCall:
    """A tool that the model asks the agent to call."""

    id: str
    name: str
    arguments: dict[str, Any]


@dataclass(frozen=True)
class Message:
    """A message of a conversation. The result of a tool call is a message of its own, with the role `tool`."""

    role: Role
    text: str = ""
    reasoning: str = ""
    calls: tuple[ToolCall, ...] = ()
    call_id: str = ""
    """Of a tool's result: the id of the call."""

    @property
    def digest(self) -> bytes:
        """The same for messages of the same content."""
        return hashlib.blake2b(plain_json.dumps(asdict(self), sort_keys=True).encode(), digest_size=16).digest()

    def said(self) -> Message:
        """What agents send back of a model's message: without its reasoning, and perhaps stripped."""
        return replace(self, reasoning="", text=self.text.strip())


def arguments_of(value: Any) -> dict[str, Any]:
    """Arguments of a call as a JSON object. Text that is none becomes the argument `input`."""
    if isinstance(value, str):
        try:
            value = json.loads(value) if value.strip() else {}
        except (ValueError, RecursionError):
            return {"input": plain(value)}
    found = plain(value)
    return found if isinstance(found, dict) else {"input": found}


def plain(value: Any, depth: int = 0) -> Any:
    """A JSON value that every reader of JSON reads: no lone surrogates, no NaN, no nesting without end."""
    if isinstance(value, str):
        return value.encode("utf-8", "replace").decode()
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    if value is None or isinstance(value, bool | int | float):
        return value
    if depth > _DEEPEST:
        return "..."
    if isinstance(value, dict):
        return {plain(str(name)): plain(each, depth + 1) for name, each in value.items()}
    if isinstance(value, list | tuple):
        return [plain(each, depth + 1) for each in value]
    return str(value)
