"""A plain request for each endpoint of the gateway, and the parts from which attacks on it are made."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import httpx

from sandbox.gateway.dialects import ENDPOINTS
from tests.sandbox.gateway.conftest import Gateway
from tests.sandbox.gateway.llm import ScriptedLLM

Open = Callable[..., Gateway]
AWAY = "https://evil.example/?stolen=1"
CHAT, RESPONSES, MESSAGES = "/v1/chat/completions", "/v1/responses", "/v1/messages"
GENERATE, COUNT = (f"/v1beta/models/{{model}}:{name}" for name in ("generateContent", "countTokens"))
CONTENTS = {"contents": [{"role": "user", "parts": [{"text": "a"}]}]}
BODIES: dict[str, dict[str, Any]] = {
    CHAT: {"model": "gpt-4o", "messages": [{"role": "user", "content": "a"}]},
    "/v1/completions": {"model": "gpt-4o", "prompt": "a"},
    RESPONSES: {"model": "gpt-4o", "input": "a"},
    "/v1/embeddings": {"model": "text-embedding-3-small", "input": "a"},
    MESSAGES: {
        "model": "claude-3-5-sonnet-20240620",
        "max_tokens": 10,
        "messages": [{"role": "user", "content": "a"}],
    },
    "/v1/messages/count_tokens": {
        "model": "claude-3-5-sonnet-20240620",
        "messages": [{"role": "user", "content": "a"}],
    },
    **{path: CONTENTS for path, each in ENDPOINTS.items() if each.api == "gemini"},
}


def part(kind: str, /, **fields: Any) -> dict[str, Any]:
    """A message with one part of content."""
    return {"messages": [{"role": "user", "content": [{"type": kind, **fields}]}]}


def item(kind: str, /, **fields: Any) -> dict[str, Any]:
    """An input with one item."""
    return {"input": [{"type": kind, **fields}]}


def said(kind: str, /, **fields: Any) -> dict[str, Any]:
    """An input with a message of one part."""
    return {"input": [{"role": "user", "content": [{"type": kind, **fields}]}]}


def parts(**fields: Any) -> dict[str, Any]:
    """Contents with one part."""
    return {"contents": [{"role": "user", "parts": [fields]}]}


def tool(**fields: Any) -> dict[str, Any]:
    """A request with one tool."""
    return {"tools": [fields]}


def post(gate: Gateway, path: str, fields: dict[str, Any]) -> httpx.Response:
    model = fields.get("model", "gemini-2.5-flash")
    url = path.replace("{model}", str(model))
    body = {**BODIES[path], **fields}
    if "{model}" in path:
        body.pop("model", None)
    return gate.http.post(url, json=body, params={"alt": "sse"} if ":stream" in path else None)


def refused(gateway: Open, llm: ScriptedLLM, path: str, fields: dict[str, Any]) -> None:
    response = post(gateway(), path, fields)
    assert response.status_code in (400, 404)
    assert llm.requests == []
