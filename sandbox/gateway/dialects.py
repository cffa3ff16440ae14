"""The differences between the APIs: paths, headers and errors."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from common.providers import Api, Provider

Problem = Literal["request", "token", "missing", "too_large", "budget", "busy", "account", "upstream", "timeout"]

# The status codes and types determine what the official clients retry. They do not retry when a budget is used up.
_OPENAI: dict[Problem, tuple[int, str, str | None]] = {
    "request": (400, "invalid_request_error", None),
    "token": (401, "invalid_request_error", "invalid_api_key"),
    "missing": (404, "invalid_request_error", "model_not_found"),
    "too_large": (413, "invalid_request_error", "request_too_large"),
    "budget": (429, "insufficient_quota", "insufficient_quota"),
    "busy": (429, "rate_limit_error", "rate_limit_exceeded"),
    "account": (502, "server_error", "upstream_credentials"),
    "upstream": (502, "server_error", "upstream_error"),
    "timeout": (504, "server_error", "upstream_timeout"),
}
_ANTHROPIC: dict[Problem, tuple[int, str]] = {
    "request": (400, "invalid_request_error"),
    "token": (401, "authentication_error"),
    "missing": (404, "not_found_error"),
    "too_large": (413, "request_too_large"),
    "budget": (402, "billing_error"),
    "busy": (429, "rate_limit_error"),
    "account": (502, "api_error"),
    "upstream": (502, "api_error"),
    "timeout": (504, "timeout_error"),
}
# Google's own client tries again whatever the status is, if it is one of 408, 429 and 5xx.
_GEMINI: dict[Problem, tuple[int, str]] = {
    "request": (400, "INVALID_ARGUMENT"),
    "token": (401, "UNAUTHENTICATED"),
    "missing": (404, "NOT_FOUND"),
    "too_large": (413, "INVALID_ARGUMENT"),
    "budget": (402, "RESOURCE_EXHAUSTED"),
    "busy": (429, "RESOURCE_EXHAUSTED"),
    "account": (502, "INTERNAL"),
    "upstream": (502, "UNAVAILABLE"),
    "timeout": (504, "DEADLINE_EXCEEDED"),
}
# No idempotency-key: a provider repeats its answer to every run of the operator's account that sends the same one.
_TO_PROVIDER = ("accept", "anthropic-version")
_BETAS = re.compile(
    "(?:prompt-caching(?:-scope)?|output-128k|token-efficient-tools|fine-grained-tool-streaming"
    "|max-tokens-3-5-sonnet|computer-use|context-1m|interleaved-thinking|extended-cache-ttl|token-counting"
    r"|context-management|structured-outputs)-\d{4}-\d\d-\d\d"
)
"""Anthropic's beta features, of any date, that neither reach the internet nor store anything; others are left out."""
_TO_AGENT = ("content-type", "retry-after", "retry-after-ms", "x-should-retry", "x-request-id", "request-id")
ANTHROPIC_VERSION = "2023-06-01"


@dataclass(frozen=True)
class Endpoint:
    """One path of the gateway."""

    api: Api
    path: str
    """Path relative to a provider's base URL; in Gemini's API with the model in it."""
    method: Literal["GET", "POST"] = "POST"
    free: bool = False
    """Consumes no tokens."""
    output: str = ""
    """The field that limits the output; empty if there is none."""
    streams: bool = False
    """The answer is always a stream. In other endpoints, the request says so."""

    def url(self, provider: Provider, model: str) -> str:
        """The URL to which requests for a model are sent."""
        base = provider.base_url.rstrip("/")
        if self.api == "gemini":
            base = base.removesuffix("/v1beta").removesuffix("/v1")
        return base + self.path.replace("{model}", model)


ENDPOINTS = {
    "/v1/chat/completions": Endpoint("openai", "/chat/completions", output="max_completion_tokens"),
    "/v1/completions": Endpoint("openai", "/completions", output="max_tokens"),
    "/v1/responses": Endpoint("openai", "/responses", output="max_output_tokens"),
    "/v1/embeddings": Endpoint("openai", "/embeddings"),
    "/v1/messages": Endpoint("anthropic", "/v1/messages", output="max_tokens"),
    "/v1/messages/count_tokens": Endpoint("anthropic", "/v1/messages/count_tokens", free=True),
    **{
        endpoint.path: endpoint
        for top in ("/v1/models/{model}", "/v1beta/models/{model}")  # Google's clients use either
        for endpoint in (
            Endpoint("gemini", f"{top}:generateContent", output="maxOutputTokens"),
            Endpoint("gemini", f"{top}:streamGenerateContent", output="maxOutputTokens", streams=True),
            Endpoint("gemini", f"{top}:countTokens", free=True),
        )
    },
}
"""The endpoints by their paths at the gateway."""


def api_of(request: Request) -> Api:
    """The API of a request whose path exists in both."""
    return "anthropic" if "anthropic-version" in request.headers else "openai"


def token_of(request: Request) -> str:
    """The API key that the agent sent."""
    scheme, _, token = request.headers.get("authorization", "").partition(" ")
    if scheme.lower() == "bearer":
        return token.strip()
    key = request.headers.get("x-api-key") or request.headers.get("x-goog-api-key")
    return key or request.query_params.get("key", "")


def error(api: Api, problem: Problem, message: str) -> Response:
    """An error in the format of that API's official client."""
    if api == "anthropic":
        status, kind = _ANTHROPIC[problem]
        body: dict[str, object] = {"type": "error", "error": {"type": kind, "message": message}}
    elif api == "gemini":
        status, kind = _GEMINI[problem]
        body = {"error": {"code": status, "message": message, "status": kind}}
    else:
        status, kind, code = _OPENAI[problem]
        body = {"error": {"message": message, "type": kind, "param": None, "code": code}}
    headers = {"x-should-retry": "true" if problem in ("busy", "upstream", "timeout") else "false"}
    return JSONResponse(body, status, {**headers, "retry-after": "5"} if problem == "busy" else headers)


def headers_to_provider(request: Request, provider: Provider) -> dict[str, str]:
    """The agent's headers that a provider needs, and the provider's API key."""
    headers = {name: request.headers[name] for name in _TO_PROVIDER if name in request.headers}
    headers["content-type"] = "application/json"
    betas = [beta.strip() for beta in request.headers.get("anthropic-beta", "").split(",")]
    if allowed_betas := [beta for beta in betas if _BETAS.fullmatch(beta)]:
        headers["anthropic-beta"] = ",".join(allowed_betas)
    key = provider.api_key.get_secret_value()
    if provider.api == "anthropic":
        headers.setdefault("anthropic-version", ANTHROPIC_VERSION)
        return {**headers, "x-api-key": key} if key else headers
    if provider.api == "gemini":  # not in the address, which proxies write to their logs
        return {**headers, "x-goog-api-key": key} if key else headers
    return {**headers, "authorization": f"Bearer {key}"} if key else headers


def headers_to_agent(headers: dict[str, str]) -> dict[str, str]:
    """The provider's headers that an agent needs, without any that describe the operator's account."""
    return {
        name: value
        for name, value in headers.items()
        if name in _TO_AGENT or name.startswith(("x-ratelimit-", "anthropic-ratelimit-"))
    }
