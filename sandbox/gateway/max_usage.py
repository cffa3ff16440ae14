"""The upper bound of what a request can use, known before it is sent."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from common import plain_json
from common.providers import Provider
from sandbox.gateway.content import Media
from sandbox.gateway.dialects import Endpoint
from sandbox.gateway.prices import Rates
from sandbox.gateway.tokens import Usage

IMAGE_TOKENS = 50_000
"""The most expensive known model: gpt-4o-mini counts 2,833 tokens for an image and 5,667 for each of up to 8 tiles."""
DOCUMENT_TOKENS = 1_000_000
"""Tokens of a document if the model's window is not known. A few bytes of PDF can be hundreds of pages."""
TOOLS_TOKENS = 1_000
"""Tokens that providers add to the prompt of a request with tools."""
LIMITS = ("max_completion_tokens", "max_output_tokens", "max_tokens")
SETTINGS = "generationConfig"
"""The field of Gemini's requests that contains the limits."""
GEMINI_MAX_OUTPUT_TOKENS = 65_536
"""The most that Gemini's models write, thoughts included; their windows are not in all list prices."""
MAX_OUTPUT_TOKENS = 10**12
"""Upper bound of the output tokens of all answers of a request. Millions of them can be summed in a table's column."""
MIN_OUTPUT_TOKENS = 16
"""The smallest limit that OpenAI's responses API accepts. An answer is not limited to less."""


@dataclass(frozen=True)
class MaxUsage:
    """The maximum numbers of tokens of a request."""

    input_tokens: int
    answers: int
    """Number of answers that it asks for, by `n`, `best_of` and the number of prompts."""
    limit: int | None
    """Output tokens of each answer; None if the request does not limit them."""
    field: str
    """The field that limits them; empty if there is no output."""

    def usage(self, provider: Provider, rates: Rates | None) -> Usage:
        """The most that it can use. Without a limit and a known window, the provider's `output_tokens`."""
        window = rates.window if rates is not None else None
        max_output = window or max(
            provider.output_tokens, GEMINI_MAX_OUTPUT_TOKENS if self.field == "maxOutputTokens" else 0
        )
        answer_tokens = self.limit if self.limit is not None else max_output
        return Usage(self.input_tokens, min(answer_tokens * self.answers, MAX_OUTPUT_TOKENS), estimated=True)

    def allows_thinking(self, body: dict[str, Any]) -> bool:
        """Whether the limit is above what the request reserves for thinking, as Anthropic's API requires."""
        thinking = body.get("thinking") or body.get(SETTINGS, {}).get("thinkingConfig")
        settings = thinking if isinstance(thinking, dict) else {}
        reserved = settings.get("budget_tokens", settings.get("thinkingBudget"))
        return self.limit is None or not isinstance(reserved, int) or reserved < self.limit

    def limited(self, tokens: int) -> MaxUsage:
        """The same with at most `tokens` in each answer."""
        return replace(self, limit=tokens if self.limit is None else min(tokens, self.limit))

    def apply(self, body: dict[str, Any]) -> dict[str, Any]:
        """The body with this limit."""
        if not self.field or self.limit is None:
            return body
        if self.field == "maxOutputTokens":
            settings = body.get(SETTINGS, {})
            stated_limit = settings.get(self.field) or self.limit
            return {**body, SETTINGS: {**settings, self.field: min(stated_limit, self.limit)}}
        names = [name for name in LIMITS if body.get(name) is not None] or [self.field]
        return {**body, **{name: min(body.get(name) or self.limit, self.limit) for name in names}}


def max_usage(
    body: dict[str, Any], endpoint: Endpoint, media: Media, provider: Provider, window: int | None
) -> MaxUsage:
    """The most that a checked request can use: no token is shorter than a byte."""
    if endpoint.free:
        return MaxUsage(0, 0, 0, "")
    text_bytes = len(plain_json.dumps(body, ensure_ascii=False).encode("utf-8", "replace")) - media.bytes
    input_tokens = (
        text_bytes + media.images * IMAGE_TOKENS + (TOOLS_TOKENS if body.get("tools") or body.get("functions") else 0)
    )
    prompts = _prompts(body.get("prompt"))
    if media.documents:
        input_tokens += media.documents * (window or DOCUMENT_TOKENS)
    if window is not None:
        input_tokens = min(
            input_tokens, window * max(prompts, _prompts(body.get("input")) if not endpoint.output else 1)
        )
    if not endpoint.output:
        return MaxUsage(input_tokens, 0, 0, "")
    if endpoint.api == "gemini":
        settings = body.get(SETTINGS, {})
        return MaxUsage(
            input_tokens, settings.get("candidateCount") or 1, settings.get(endpoint.output) or None, endpoint.output
        )
    answers = max(body.get("n") or 1, body.get("best_of") or 1) * prompts
    stated_limits = [body[name] for name in LIMITS if body.get(name) is not None]
    field = endpoint.output if endpoint.output != "max_completion_tokens" else provider.output_field
    return MaxUsage(input_tokens, answers, max(stated_limits, default=None), field)


def _prompts(value: Any) -> int:
    """Number of prompts in the field of that name: a text, a list of tokens, or a list of either."""
    if not isinstance(value, list) or not value or isinstance(value[0], int):
        return 1
    return len(value)
