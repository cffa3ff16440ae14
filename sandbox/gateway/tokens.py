"""How many tokens a request took: as the provider reports it, else estimated."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from common.providers import Api

BYTES_PER_TOKEN = 4
"""For estimates; about right for English and code."""
_TEXTS = frozenset({"content", "text", "delta", "arguments", "partial_json", "thinking", "reasoning_content"})


@dataclass(frozen=True)
class Usage:
    """Tokens of one request; what was read from and written to a cache is part of the input."""

    input_tokens: int = 0
    output_tokens: int = 0
    cache_read_tokens: int = 0
    cache_write_tokens: int = 0
    estimated: bool = False

    @property
    def total(self) -> int:
        """Input and output."""
        return self.input_tokens + self.output_tokens


def estimate(count: int) -> int:
    """Tokens in so many bytes of text."""
    return -(-count // BYTES_PER_TOKEN)


def reported(api: Api, usage: Any) -> Usage | None:
    """The `usage` object of a response in either API's words; None if that says nothing."""
    if not isinstance(usage, dict):
        return None
    if api == "anthropic":
        read, write = _count(usage, "cache_read_input_tokens"), _count(usage, "cache_creation_input_tokens")
        plain, output = _count(usage, "input_tokens"), _count(usage, "output_tokens")
        found = Usage(plain + read + write, output, read, write)
    else:
        given = _count(usage, "prompt_tokens") or _count(usage, "input_tokens")
        output = _count(usage, "completion_tokens") or _count(usage, "output_tokens")
        details = usage.get("prompt_tokens_details") or usage.get("input_tokens_details")
        read = _count(details, "cached_tokens") if isinstance(details, dict) else 0
        found = Usage(given or max(_count(usage, "total_tokens") - output, 0), output, min(read, given))
    return found if found.total else None


def _count(usage: dict[str, Any], name: str) -> int:
    value = usage.get(name)
    return value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else 0


class StreamMeter:
    """Reads along in a stream of server-sent events."""

    def __init__(self, api: Api) -> None:
        """Begin with the first line."""
        self._api = api
        self._usage: dict[str, Any] = {}
        self._characters = 0

    def read(self, line: bytes) -> bool:
        """Take note of a line; whether it carries nothing but the usage at the end of an OpenAI chat stream."""
        if not line.startswith(b"data:") or line[5:].strip() in (b"", b"[DONE]"):
            return False
        try:
            event = json.loads(line[5:])
        except (ValueError, RecursionError):
            return False
        if not isinstance(event, dict):
            return False
        self._characters += _characters(event)
        inner = next((event[name] for name in ("response", "message") if isinstance(event.get(name), dict)), event)
        usage = inner.get("usage")
        if isinstance(usage, dict):
            self._usage.update({name: value for name, value in usage.items() if value is not None})
            return event.get("choices") == []
        return False

    def usage(self, request_bytes: int) -> Usage:
        """What the stream took, estimated from sizes where it did not say or broke off before."""
        found = reported(self._api, self._usage)
        guess = estimate(self._characters)
        if found is None:
            return Usage(estimate(request_bytes), guess, estimated=True)
        if guess > 2 * found.output_tokens + 16:  # Anthropic's first event reports the input, and an output of one
            return Usage(found.input_tokens, guess, found.cache_read_tokens, found.cache_write_tokens, estimated=True)
        return found


def _characters(value: Any, depth: int = 0) -> int:
    """Length of the new text in an event."""
    if depth > 8:
        return 0
    if isinstance(value, list):
        return sum(_characters(each, depth + 1) for each in value)
    if not isinstance(value, dict):
        return 0
    if value.get("type") in ("response.completed", "response.output_item.done", "response.content_part.done"):
        return 0  # repeats what came before
    if str(value.get("type", "")).endswith(".done"):
        return 0
    return sum(
        len(each.encode("utf-8", "replace"))
        if name in _TEXTS and isinstance(each, str)
        else _characters(each, depth + 1)
        for name, each in value.items()
    )
