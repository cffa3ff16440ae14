"""Count the tokens of a request: as reported by the provider, else estimated."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from common.providers import Api

BYTES_PER_TOKEN = 4
"""Used for estimates; approximately right for English and code."""
_TEXTS = frozenset({"content", "text", "delta", "arguments", "partial_json", "thinking", "reasoning_content"})


@dataclass(frozen=True)
class Usage:
    """Tokens of one request. Tokens read from or written to a cache are part of the input."""

    input_tokens: int = 0
    output_tokens: int = 0
    cache_read_tokens: int = 0
    cache_write_tokens: int = 0
    estimated: bool = False

    @property
    def total(self) -> int:
        """Input and output tokens together."""
        return self.input_tokens + self.output_tokens


def estimate(count: int) -> int:
    """Estimated tokens in `count` bytes of text, rounded up.

    >>> estimate(9)
    3
    """
    return -(-count // BYTES_PER_TOKEN)


def reported(api: Api, usage: Any) -> Usage | None:
    """Parse the `usage` object of a response of either API; None if it reports no tokens."""
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
    """Counts the tokens of a stream of server-sent events."""

    def __init__(self, api: Api) -> None:
        self._api = api
        self._usage: dict[str, Any] = {}
        self._characters = 0

    def read(self, line: bytes) -> bool:
        """Process a line; returns whether it contains only the usage, at the end of an OpenAI chat stream."""
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
        """Tokens of the whole stream; estimated from sizes if it did not report them or was cut off."""
        found = reported(self._api, self._usage)
        guess = estimate(self._characters)
        if found is None:
            return Usage(estimate(request_bytes), guess, estimated=True)
        # A stream that was cut off: Anthropic's first event reports the input tokens, and only one output token.
        if guess > 2 * found.output_tokens + 16:
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
        return 0  # repeats earlier events
    if str(value.get("type", "")).endswith(".done"):
        return 0
    return sum(
        len(each.encode("utf-8", "replace"))
        if name in _TEXTS and isinstance(each, str)
        else _characters(each, depth + 1)
        for name, each in value.items()
    )
