"""Read and check an agent's request. The provider is sent exactly the content that was checked."""

from __future__ import annotations

import asyncio
import json
from dataclasses import dataclass, field
from typing import Any, NoReturn

from starlette.requests import Request

from common.providers import Provider
from common.units import size
from sandbox.gateway import gemini
from sandbox.gateway.content import Media, Refused, check_content
from sandbox.gateway.dialects import Endpoint, Problem
from sandbox.gateway.fields import (
    MEDIA_MODELS,
    foreign_model,
    unknown_field,
    without_empty,
    wrong_value,
)
from sandbox.gateway.limits import ReservedMemory
from sandbox.gateway.tools import check_tools

BODY_SECONDS = 120.0
MEMORY_WAIT_SECONDS = 30.0
"""Time that a request waits until the bodies of others leave enough memory for its own."""
MODEL_CHARACTERS = 200
VALUES = 1_000_000
"""Maximum number of values in a body."""
VALUE_BYTES = 100
"""Approximate memory of a parsed value, in addition to its text."""


class RequestRejected(Exception):
    """A request that is not sent to a provider; `problem` selects the error that the agent gets."""

    def __init__(self, problem: Problem, message: str) -> None:
        super().__init__(message)
        self.problem = problem


_TOO_DEEP = "the request is nested too deeply"


@dataclass(frozen=True)
class CompletionRequest:
    """A request that passed the checks."""

    body: dict[str, Any]
    model: str
    stream: bool
    media: Media = field(default_factory=Media)


async def read_body(request: Request, max_bytes: int, reserved: ReservedMemory) -> dict[str, Any]:
    """Read and parse a request's JSON body, within the memory of `reserved`, which grows by what it takes.

    Raises:
        RequestRejected: the body is too large, too slow or not a JSON object.
        MemoryLimitReached: there is not enough memory for it now.
    """
    content = await _read(request, max_bytes, reserved)
    values = sum(map(content.count, (b",", b"[", b"{")))
    if values > VALUES:
        raise RequestRejected("too_large", f"the request has more than {VALUES:,} values")
    reserved.grow(values * VALUE_BYTES + len(content))
    try:
        body = json.loads(content, parse_constant=_no_constant)
        json.dumps(body, allow_nan=False)
    except (ValueError, RecursionError):
        raise RequestRejected("request", "the request's body is not valid JSON") from None
    if not isinstance(body, dict):
        raise RequestRejected("request", "the request's body must be a JSON object")
    return body


def model_of(body: dict[str, Any]) -> str:
    """The model that a body names. Raises `RequestRejected` if it names none."""
    model = body.get("model")
    if not isinstance(model, str) or not 0 < len(model) <= MODEL_CHARACTERS or not model.isprintable():
        raise RequestRejected("request", "the request must name a model")
    return model


def check(
    body: dict[str, Any], model: str, endpoint: Endpoint, provider: Provider, *, hosted_tools: bool
) -> CompletionRequest:
    """Check a request to a provider by the lists of what agents may ask for.

    Raises:
        RequestRejected: it asks for something that is not allowed, or that has no price known in advance.
    """
    if not hosted_tools and foreign_model(provider, model):
        raise RequestRejected("missing", f"the model {model!r} is not available here: models may not search the web")
    if endpoint.api == "gemini":
        return _check_gemini(body, model, endpoint, provider, hosted_tools=hosted_tools)
    body = without_empty(endpoint.path, body)
    if (unknown := unknown_field(endpoint.path, body, provider, hosted_tools=hosted_tools)) is not None:
        raise RequestRejected("request", f"the field {unknown[:60]!r} is not available here: remove it")
    if (reason := wrong_value(body, provider)) is not None:
        raise RequestRejected("request", reason)
    if hosted_tools:
        return CompletionRequest(body, model, body.get("stream") is True, _media(body, endpoint))
    try:
        check_tools(endpoint.api, body)
        media = check_content(endpoint.api, endpoint.path, body)
    except Refused as error:
        raise RequestRejected("request", str(error)) from None
    except RecursionError:
        raise RequestRejected("request", _TOO_DEEP) from None
    return CompletionRequest(body, model, body.get("stream") is True, media)


def _check_gemini(
    body: dict[str, Any], model: str, endpoint: Endpoint, provider: Provider, *, hosted_tools: bool
) -> CompletionRequest:
    if MEDIA_MODELS.search(model) and model not in provider.models:
        raise RequestRejected("missing", f"the model {model!r} is not available here: models may only write text")
    try:
        checked, media = gemini.checked(endpoint.path, body, model, provider, hosted_tools=hosted_tools)
    except Refused as error:
        raise RequestRejected("request", str(error)) from None
    except RecursionError:
        raise RequestRejected("request", _TOO_DEEP) from None
    return CompletionRequest(checked, model, endpoint.streams, media)


def _media(body: dict[str, Any], endpoint: Endpoint) -> Media:
    """The media of a request that may contain anything: unknown content counts as a document."""
    try:
        return check_content(endpoint.api, endpoint.path, body)
    except (Refused, RecursionError):
        return Media(documents=1)


async def _read(request: Request, max_bytes: int, reserved: ReservedMemory) -> bytes:
    message = f"the request is larger than {size(max_bytes)}"
    content = bytearray()
    try:
        async with asyncio.timeout(BODY_SECONDS):
            async for chunk in request.stream():
                if len(content) + len(chunk) > max_bytes:
                    raise RequestRejected("too_large", message)
                if len(content) + len(chunk) > reserved.size:
                    reserved.grow(len(chunk))
                content += chunk
    except TimeoutError:
        raise RequestRejected("request", f"the request did not arrive within {BODY_SECONDS:g} seconds") from None
    return bytes(content)


def declared_size(request: Request, max_bytes: int) -> int:
    """Size of a request's body by its headers, 0 if they state none. Raises `RequestRejected` if it is too large."""
    declared = request.headers.get("content-length", "")
    length = int(declared[:20]) if declared.isdecimal() else 0
    if length > max_bytes:
        raise RequestRejected("too_large", f"the request is larger than {size(max_bytes)}")
    return length


def _no_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not JSON")
