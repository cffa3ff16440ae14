"""Count the tokens of a request: as reported by the provider, else estimated."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from common.providers import Api

BYTES_PER_TOKEN = 4
"""Used for estimates; approximately right for English and code."""
MAX_TOKENS = 10**9
"""More than any model reads or writes for one request."""
_LAST_EVENTS = ("message_stop", "response.completed", "response.incomplete", "response.failed")
"""Types of events after which Anthropic's streams, and those of OpenAI's responses, have nothing to report."""


@dataclass(frozen=True)
class Usage:
    """Tokens of one request. Tokens read from or written to a cache are part of the input."""

    input_tokens: int = 0
    output_tokens: int = 0
    cache_read_tokens: int = 0
    cache_write_tokens: int = 0
    cache_write_long_tokens: int = 0
    """The part of `cache_write_tokens` that is kept for an hour, which costs more."""
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


def is_count(value: Any) -> bool:
    """Whether a value can be a number of tokens or answers.

    >>> [is_count(value) for value in (0, 10**9, -1, 1.0, True, "1", 10**30)]
    [True, True, False, False, False, False, False]
    """
    return type(value) is int and 0 <= value <= MAX_TOKENS


def reported(api: Api, usage: Any) -> Usage | None:
    """Parse the object with the usage of a response; None if it reports no tokens, or something that is no number.

    If one of the numbers is impossible, none of them is used.
    """
    if not isinstance(usage, dict):
        return None
    try:
        return _reported(api, usage)
    except _NotACount:
        return None


class _NotACount(ValueError):
    """A number of tokens is not a whole number from 0 to `MAX_TOKENS`."""


def _reported(api: Api, usage: dict[str, Any]) -> Usage | None:
    if api == "gemini":
        # Tokens that a tool of the provider reads are not in those of the prompt, nor thoughts in those of the answer.
        input_tokens = _count(usage, "promptTokenCount") + _count(usage, "toolUsePromptTokenCount")
        output_tokens = _count(usage, "candidatesTokenCount") + _count(usage, "thoughtsTokenCount")
        output_tokens = max(output_tokens, _count(usage, "totalTokenCount") - input_tokens)
        parsed_usage = Usage(input_tokens, output_tokens, min(_count(usage, "cachedContentTokenCount"), input_tokens))
        return parsed_usage if parsed_usage.total else None
    if api == "anthropic":
        read, write = _count(usage, "cache_read_input_tokens"), _count(usage, "cache_creation_input_tokens")
        plain, output_tokens = _count(usage, "input_tokens"), _count(usage, "output_tokens")
        creation = usage.get("cache_creation")
        long = _count(creation, "ephemeral_1h_input_tokens") if isinstance(creation, dict) else 0
        parsed_usage = Usage(plain + read + write, output_tokens, read, write, min(long, write))
    else:
        input_tokens = _count(usage, "prompt_tokens") or _count(usage, "input_tokens")
        output_tokens = _count(usage, "completion_tokens") or _count(usage, "output_tokens")
        total = _count(usage, "total_tokens")
        input_tokens = input_tokens or max(total - output_tokens, 0)
        # Some providers report the reasoning only in the total, not in the answer.
        output_tokens = max(output_tokens, total - input_tokens)
        details = usage.get("prompt_tokens_details") or usage.get("input_tokens_details")
        details = details if isinstance(details, dict) else {}
        # Models that report tokens written to the cache bill them at a price of their own; they were not read there.
        read = min(_count(details, "cached_tokens"), input_tokens)
        parsed_usage = Usage(
            input_tokens, output_tokens, read, min(_count(details, "cache_write_tokens"), input_tokens - read)
        )
    return parsed_usage if parsed_usage.total else None


def usage_in(answer: dict[str, Any]) -> Any:
    """The object with the usage in an answer, whole or a part of a stream."""
    return answer.get("usage", answer.get("usageMetadata"))


def tier_of(answer: dict[str, Any]) -> str:
    """The tier of service that an answer of either API names, empty if it names none."""
    usage = answer.get("usage")
    tier = answer.get("service_tier") or (usage.get("service_tier") if isinstance(usage, dict) else None)
    return tier[:40] if isinstance(tier, str) else ""


def _count(usage: dict[str, Any], name: str) -> int:
    value = usage.get(name)
    if value is None:
        return 0
    if not is_count(value):
        raise _NotACount
    return int(value)


class StreamMeter:
    """Reads the usage of a stream of server-sent events."""

    def __init__(self, api: Api) -> None:
        self.tier = ""
        self._api = api
        self._usage: dict[str, Any] = {}
        self._ended = False
        self._finished: dict[Any, bool] = {}
        """Whether an answer of Gemini's API has ended, by its index."""

    def read(self, line: bytes) -> bool:
        """Process a line; returns whether it contains only the usage, at the end of an OpenAI chat stream."""
        if not line.startswith(b"data:"):
            return False
        data = line[5:].strip()
        self._ended |= data == b"[DONE]"
        try:
            event = json.loads(data)
        except (ValueError, RecursionError):
            return False
        if not isinstance(event, dict):
            return False
        self._ended |= event.get("type") in _LAST_EVENTS
        if self._api == "gemini":
            self._ended = self._all_finished(event)
        inner = next((event[name] for name in ("response", "message") if isinstance(event.get(name), dict)), event)
        usage = usage_in(inner)
        self.tier = tier_of(inner) or self.tier
        if isinstance(usage, dict):
            self._usage.update({name: value for name, value in usage.items() if value is not None})
            return event.get("choices") == []
        return False

    def _all_finished(self, event: dict[str, Any]) -> bool:
        """Whether all answers of a stream of Gemini's API have ended, of which there is none if it was blocked."""
        feedback, candidates = event.get("promptFeedback"), event.get("candidates")
        for candidate in candidates if isinstance(candidates, list) else []:
            if isinstance(candidate, dict):
                index = str(candidate.get("index", 0))
                self._finished[index] = self._finished.get(index, False) or bool(candidate.get("finishReason"))
        blocked = isinstance(feedback, dict) and bool(feedback.get("blockReason"))
        return all(self._finished.values()) and (bool(self._finished) or blocked)

    def usage(self) -> Usage | None:
        """Tokens of the whole stream; None if it did not report them, or ended before its end."""
        return reported(self._api, self._usage) if self._ended else None
