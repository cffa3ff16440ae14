"""Requests that are nested more deeply than they can be checked are refused, as others that are wrong."""

from __future__ import annotations

from typing import Any

import pytest

from common.providers import Provider
from sandbox.gateway.dialects import Endpoint
from sandbox.gateway.request import RequestRejected, check


def _content(kind: str, field: str, levels: int = 3000) -> list[dict[str, Any]]:
    inner: list[dict[str, Any]] = []
    for _ in range(levels):
        inner = [{"type": kind, field: inner}]
    return inner


@pytest.mark.parametrize(
    ("endpoint", "body"),
    [
        (
            Endpoint("anthropic", "/v1/messages"),
            {"messages": [{"role": "user", "content": _content("tool_result", "content")}]},
        ),
        (Endpoint("openai", "/chat/completions"), {"tool_choice": _content("allowed_tools", "tools")[0]}),
    ],
)
@pytest.mark.parametrize("hosted_tools", [False, True])
def test_a_request_that_is_nested_too_deeply(endpoint: Endpoint, body: dict[str, Any], hosted_tools: bool) -> None:
    provider = Provider(base_url="http://127.0.0.1:9/v1")
    if hosted_tools:  # it may contain anything
        assert check(body, "model", endpoint, provider, hosted_tools=True).media.documents <= 1
        return
    with pytest.raises(RequestRejected, match="nested too deeply"):
        check(body, "model", endpoint, provider, hosted_tools=False)
