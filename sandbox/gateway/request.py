"""Parse and check an agent's request. The provider is sent exactly the content that was checked."""

from __future__ import annotations

import asyncio
import json
from dataclasses import dataclass
from typing import Any, NoReturn

from starlette.requests import Request

from common.providers import Api
from common.units import size
from sandbox.gateway.dialects import Problem

BODY_SECONDS = 120.0
MODEL_CHARACTERS = 200
OUTPUT_TOKENS = 4096
"""Estimated output of a request under way that sets no limit."""
_OUTPUT_LIMITS = ("max_completion_tokens", "max_output_tokens", "max_tokens", "max_tokens_to_sample")
_OWN_TOOLS = {
    "openai": ("function", "custom", "local_shell", "apply_patch"),
    "anthropic": ("custom", "bash_", "text_editor_", "computer_", "memory_"),
}
"""Prefixes of the types of tools that the agent runs itself."""
_PARTS = frozenset({"image_url", "input_image", "input_file", "file", "image", "document"})
_ADDRESSES = frozenset({"url", "image_url", "file_url"})


class RequestRejected(Exception):
    """A request that is not sent to a provider; `problem` selects the error that the agent gets."""

    def __init__(self, problem: Problem, message: str) -> None:
        super().__init__(message)
        self.problem = problem


@dataclass(frozen=True)
class CompletionRequest:
    """A request that passed the checks."""

    body: dict[str, Any]
    model: str
    stream: bool
    bytes: int
    """Size of the original body."""

    @property
    def output_tokens(self) -> int:
        """Maximum number of output tokens that the request asks for, or an estimate."""
        limits = (self.body.get(name) for name in _OUTPUT_LIMITS)
        stated = [limit for limit in limits if isinstance(limit, int) and limit > 0]
        return max(stated, default=OUTPUT_TOKENS)


async def read_request(request: Request, api: Api, max_bytes: int, *, hosted_tools: bool) -> CompletionRequest:
    """Read and check a request's JSON body.

    Raises:
        RequestRejected: the body is too large, too slow or not a JSON object, it names no model, or it asks for
            something that is not allowed.
    """
    content = await _read(request, max_bytes)
    try:
        body = json.loads(content, parse_constant=_no_constant)
        json.dumps(body, allow_nan=False)
    except (ValueError, RecursionError):
        raise RequestRejected("request", "the request's body is not valid JSON") from None
    if not isinstance(body, dict):
        raise RequestRejected("request", "the request's body must be a JSON object")
    model = body.get("model")
    if not isinstance(model, str) or not 0 < len(model) <= MODEL_CHARACTERS or not model.isprintable():
        raise RequestRejected("request", "the request must name a model")
    if body.get("background"):
        raise RequestRejected("request", "background responses are not available here: remove `background`")
    if not hosted_tools and (what := hosted_tool(api, body)):
        raise RequestRejected("request", f"{what} is not available here: models may not reach the internet for you")
    return CompletionRequest(body, model, body.get("stream") is True, len(content))


def hosted_tool(api: Api, body: dict[str, Any]) -> str | None:
    """The part of a request that makes the provider itself search, fetch or run something; None if there is none."""
    for name in ("web_search_options", "mcp_servers", "container", "plugins"):
        if body.get(name):
            return f"`{name}`"
    tools = body.get("tools")
    for tool in tools if isinstance(tools, list) else []:
        kind = tool.get("type", "custom") if isinstance(tool, dict) else ""
        if not isinstance(kind, str) or not kind.startswith(_OWN_TOOLS[api]):
            return f"the tool {str(kind)[:60]!r}"
    if "search-preview" in str(body.get("model")):
        return "a model that searches the web"
    return "content by URL (send it as data)" if _fetches(body.get("messages") or body.get("input")) else None


def _fetches(value: Any, part: bool = False) -> bool:
    """Whether content contains a URL that the provider would fetch."""
    if isinstance(value, list):
        return any(_fetches(each, part) for each in value)
    if not isinstance(value, dict):
        return False
    part = part or value.get("type") in _PARTS
    for name, each in value.items():
        if part and name in _ADDRESSES and isinstance(each, str) and not each.lower().startswith("data:"):
            return True
        if _fetches(each, part):
            return True
    return False


async def _read(request: Request, max_bytes: int) -> bytes:
    message = f"the request is larger than {size(max_bytes)}"
    declared = request.headers.get("content-length", "")
    if declared.isdecimal() and int(declared[:20]) > max_bytes:
        raise RequestRejected("too_large", message)
    content = bytearray()
    try:
        async with asyncio.timeout(BODY_SECONDS):
            async for chunk in request.stream():
                content += chunk
                if len(content) > max_bytes:
                    raise RequestRejected("too_large", message)
    except TimeoutError:
        raise RequestRejected("request", f"the request did not arrive within {BODY_SECONDS:g} seconds") from None
    return bytes(content)


def _no_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not JSON")
