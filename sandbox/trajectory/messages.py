"""Messages between an agent and a language model, in one form for all APIs."""

from __future__ import annotations

import hashlib
import json
import math
from dataclasses import asdict, dataclass, replace
from typing import Any, Literal

from common import plain_json

Role = Literal["system", "user", "assistant", "tool"]

_MAX_DEPTH = 40


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
    """The id of the call, in the result of a tool."""

    @property
    def digest(self) -> bytes:
        """A hash of the content."""
        return hashlib.blake2b(plain_json.dumps(asdict(self), sort_keys=True).encode(), digest_size=16).digest()

    def said(self) -> Message:
        """The message as agents send it back: without the model's reasoning, and with its text stripped."""
        return replace(self, reasoning="", text=self.text.strip())


def arguments_of(value: Any) -> dict[str, Any]:
    """Arguments of a call as a JSON object. A value that is no object becomes the argument `input`."""
    if isinstance(value, str):
        try:
            value = json.loads(value) if value.strip() else {}
        except (ValueError, RecursionError):
            return {"input": plain(value)}
    arguments = plain(value)
    return arguments if isinstance(arguments, dict) else {"input": arguments}


def plain(value: Any, depth: int = 0) -> Any:
    """A JSON value that every JSON parser accepts: no lone surrogates, no NaN, a limited depth."""
    if isinstance(value, str):
        return value.encode("utf-8", "replace").decode()
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    if value is None or isinstance(value, bool | int | float):
        return value
    if depth > _MAX_DEPTH:
        return "..."
    if isinstance(value, dict):
        return {plain(str(name)): plain(item, depth + 1) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain(item, depth + 1) for item in value]
    return str(value)
