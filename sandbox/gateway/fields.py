"""The fields and models that agents may ask for, by endpoint.

Providers keep adding features that reach the internet, or objects that are stored in the operator's account. Fields and
models that are not listed here are therefore refused. The operator can allow more: `MLEBENCH_PROVIDERS__NAME__FIELDS`
for one provider, `MLEBENCH_LLM_HOSTED_TOOLS` for all tools that providers run.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

from common.providers import Provider
from sandbox.gateway.tokens import is_count

_SAMPLING = (
    "temperature top_p top_k min_p seed stop presence_penalty frequency_penalty repetition_penalty logit_bias user"
)
_TOOLS = "tools tool_choice parallel_tool_calls"
_OPENAI = "model stream stream_options service_tier metadata store prompt_cache_key safety_identifier verbosity"


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


FIELDS: dict[str, frozenset[str]] = {
    "/chat/completions": _words(
        f"{_OPENAI} {_SAMPLING} {_TOOLS} messages n max_tokens max_completion_tokens logprobs top_logprobs functions "
        "function_call response_format reasoning_effort modalities prompt_cache_retention guided_json guided_regex "
        "guided_choice guided_grammar chat_template_kwargs reasoning thinking"
    ),
    "/completions": _words(
        f"model stream stream_options {_SAMPLING} prompt suffix n best_of max_tokens logprobs echo "
        "prompt_logprobs add_special_tokens"
    ),
    "/responses": _words(
        f"{_OPENAI} {_TOOLS} input instructions max_output_tokens max_tool_calls temperature top_p top_logprobs "
        "reasoning text truncation include user prompt_cache_retention"
    ),
    "/embeddings": _words("model input encoding_format dimensions user input_type"),
    "/v1/messages": _words(
        f"{_TOOLS} model messages system max_tokens metadata stop_sequences stream temperature top_k top_p thinking "
        "service_tier output_config output_format cache_control context_management"
    ),
}
FIELDS["/v1/messages/count_tokens"] = FIELDS["/v1/messages"]
ABOUT_CLIENT = {
    "/responses": _words("client_metadata"),  # Codex: which machine and session it is
    "/chat/completions": _words("provider_specific_fields"),  # litellm: what it read in an earlier answer
}
"""Fields of a request, or of its messages, that are meant for the client itself. They do not reach the provider."""
HOSTED_TOOL_FIELDS = _words("web_search_options mcp_servers container plugins search_parameters")
"""Fields that are allowed besides with hosted tools."""
PLAIN_TIERS = ("auto", "default", "flex", "standard_only")
"""Tiers of service that do not cost more than the plain price."""

_FOREIGN_MODEL = re.compile(
    r":online|:nitro|@preset|^ft:|(?<!re)search|deep-?research|sonar|compound|browsing|multi-agent"
    r"|/(auto|fusion|router)\Z",
    re.IGNORECASE,
)
"""Models that search the web, change their price, or belong to the operator's account."""


MEDIA_MODELS = re.compile(r"image|-tts|-audio|-live|-omni|banana|veo|imagen|lyria", re.IGNORECASE)
"""Models of Gemini's API that answer with pictures or sound, without being asked to, at prices of their own."""


def unknown_field(path: str, body: dict[str, Any], provider: Provider, *, hosted_tools: bool) -> str | None:
    """The first field that may not be sent to this path of the provider; None if there is none."""
    allowed = FIELDS[path] | set(provider.fields) | (HOSTED_TOOL_FIELDS if hosted_tools else frozenset())
    return next((name for name in body if name not in allowed), None)


def without_empty(path: str, body: dict[str, Any]) -> dict[str, Any]:
    """The body without unlisted fields that ask for nothing, which some clients send, and those about the client."""
    listed, client_fields = FIELDS[path], ABOUT_CLIENT.get(path, ())
    body = {
        name: value
        for name, value in body.items()
        if name in listed or (value not in (None, False, [], {}, "") and name not in client_fields)
    }
    if client_fields and isinstance(body.get("messages"), list):
        body["messages"] = [_without(client_fields, message) for message in body["messages"]]
    return body


def _without(names: Iterable[str], message: Any) -> Any:
    return {name: message[name] for name in message if name not in names} if isinstance(message, dict) else message


def foreign_model(provider: Provider, model: str) -> bool:
    """Whether a model searches the web or belongs to the operator's account, and the operator does not name it."""
    return model not in provider.models and _FOREIGN_MODEL.search(model) is not None


def wrong_value(body: dict[str, Any], provider: Provider) -> str | None:
    """Why a value on which the price of a request depends, or with which it is stored, is refused; None if none is."""
    for name in ("n", "best_of", "max_tokens", "max_completion_tokens", "max_output_tokens"):
        value = body.get(name)
        if value is not None and not is_count(value):
            return f"`{name}` must be a number of at least 0, without a fraction"
    if not isinstance(body.get("stream", False), bool | None):
        return "`stream` must be true or false"
    tier = body.get("service_tier")
    if tier is not None and tier not in PLAIN_TIERS:
        return f"`service_tier` may only be one of {', '.join(PLAIN_TIERS)} here: other tiers cost more"
    if body.get("modalities") not in (None, ["text"]):
        return "`modalities` may only be text here"
    if body.get("store") not in (None, False) and "store" not in provider.fields:
        return "`store` may only be false here: answers are not kept in the operator's account"
    return None
