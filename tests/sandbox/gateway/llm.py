"""A provider with a script: speaks the APIs of OpenAI, Anthropic and Gemini, streaming or not, and remembers."""

from __future__ import annotations

import asyncio
import contextlib
import json
import threading
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass, field
from typing import Any

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route

KEY = "sk-proj-THE-REAL-KEY-of-the-operator-0123456789"
WORDS = ["def", " solve", "():", " return", " 42"]
OPENAI_USAGE = {
    "prompt_tokens": 1000,
    "completion_tokens": 50,
    "total_tokens": 1050,
    "prompt_tokens_details": {"cached_tokens": 400},
}
RESPONSES_USAGE = {
    "input_tokens": 1000,
    "input_tokens_details": {"cached_tokens": 400, "cache_write_tokens": 0},
    "output_tokens": 50,
    "output_tokens_details": {"reasoning_tokens": 0},
    "total_tokens": 1050,
}
ANTHROPIC_USAGE = {
    "input_tokens": 500,
    "cache_creation_input_tokens": 100,
    "cache_read_input_tokens": 400,
    "output_tokens": 50,
}
GEMINI_USAGE = {
    "promptTokenCount": 1000,
    "cachedContentTokenCount": 400,
    "candidatesTokenCount": 30,
    "thoughtsTokenCount": 20,
    "totalTokenCount": 1050,
}


@dataclass
class Seen:
    """A request as it arrived."""

    path: str
    query: str
    headers: dict[str, str]
    body: Any


@dataclass
class ScriptedLLM:
    """The provider; its script is its fields."""

    url: str = ""
    requests: list[Seen] = field(default_factory=list)
    fail: tuple[int, Any] | None = None
    redirect: str | None = None
    hang: bool = False
    pause: float = 0.0
    """Between two events of a stream."""
    report_usage: bool = True
    finished_streams: int = 0
    open: threading.Event = field(default_factory=threading.Event)
    """Answers wait for it; see `held`."""
    under_way: int = 0
    most_under_way: int = 0
    greedy: bool = False
    """Bill every byte of text as a token, and as much output as a request allows; whether the answer arrives or not."""
    tier: str | None = None
    usage: dict[str, Any] | None = None
    """Reported instead of the usual one."""
    breaks_off: int | None = None
    """Number of events after which a stream ends without its end."""
    large: int = 0
    """Bytes of text in each answer, instead of the usual text."""
    billed: list[tuple[str, int, int]] = field(default_factory=list)
    """Model, input and output tokens of each request, with `greedy`."""

    def __post_init__(self) -> None:
        self.open.set()

    @contextlib.contextmanager
    def held(self) -> Iterator[None]:
        """Let answers wait until `release` is called."""
        self.open.clear()
        try:
            yield
        finally:
            self.open.set()

    def release(self) -> None:
        self.open.set()

    def app(self) -> Starlette:
        names: tuple[str, ...] = (
            "/v1/chat/completions",
            "/v1/completions",
            "/v1/responses",
            "/v1/embeddings",
            "/v1/messages",
        )
        names += ("/v1/messages/count_tokens", "/v1/models", "/v1/models/{model}", "/v1beta/models/{model}")
        return Starlette(routes=[Route(name, self._answer, methods=["GET", "POST"]) for name in names])

    async def _answer(self, request: Request) -> Response:
        content = await request.body()
        body = json.loads(content) if content else None
        self.requests.append(Seen(request.url.path, request.url.query, dict(request.headers), body))
        if self.greedy and isinstance(body, dict):
            self.billed.append(_bill(request.url.path, body))
        if self.redirect:
            return Response(status_code=307, headers={"location": self.redirect})
        if self.hang:
            await asyncio.sleep(60)
        if self.fail:
            status, problem = self.fail
            headers = {"retry-after": "7", "openai-organization": "the-operator"}
            return JSONResponse(problem, status, headers)
        self.under_way += 1
        self.most_under_way = max(self.most_under_way, self.under_way)
        try:
            while not self.open.is_set():
                await asyncio.sleep(0.01)
            return await self._succeed(request, body)
        finally:
            self.under_way -= 1

    async def _succeed(self, request: Request, body: Any) -> Response:
        path = request.url.path
        headers = {"x-request-id": "req-1", "openai-organization": "the-operator", "set-cookie": "a=b"}
        if self.large and not (body or {}).get("stream"):
            return JSONResponse({"text": "x" * self.large})
        if path.startswith("/v1/models") and request.method == "GET":
            return JSONResponse({"object": "list", "data": [{"id": "gpt-4o", "object": "model"}]}, headers=headers)
        if path.endswith("count_tokens"):
            return JSONResponse({"input_tokens": 12})
        if path.endswith(":countTokens"):
            return JSONResponse({"totalTokens": 12})
        if path.endswith(":streamGenerateContent"):
            return StreamingResponse(self._paced(self._gemini()), media_type="text/event-stream", headers=headers)
        if not body.get("stream"):
            await asyncio.sleep(self.pause)
            whole = self._whole(path, body)
            if self.report_usage and (self.usage or self.greedy):
                name = "usageMetadata" if "candidates" in whole else "usage"
                whole[name] = self.usage or _usage(path, *self.billed[-1][1:])
            return JSONResponse({**whole, **({"service_tier": self.tier} if self.tier else {})}, headers=headers)
        events = {"/v1/messages": self._anthropic, "/v1/responses": self._responses}.get(path, self._chat)
        return StreamingResponse(self._paced(events(body)), media_type="text/event-stream", headers=headers)

    def _whole(self, path: str, body: Any) -> Any:
        usage = {"usage": OPENAI_USAGE} if self.report_usage else {}
        text = "".join(WORDS)
        if path == "/v1/messages":
            content = [{"type": "text", "text": text}]
            return _message(body) | {"content": content, "stop_reason": "end_turn", "usage": ANTHROPIC_USAGE}
        if path.endswith(":generateContent"):
            return _candidate(text, "STOP") | ({"usageMetadata": GEMINI_USAGE} if self.report_usage else {})
        if path == "/v1/responses":
            return _response(body) | {"output": [_said(text)], "usage": RESPONSES_USAGE}
        if path == "/v1/embeddings":
            usage = {"usage": {"prompt_tokens": 8, "total_tokens": 8}}
            vector = {"object": "embedding", "embedding": [0.1, 0.2], "index": 0}
            return {"object": "list", "data": [vector], "model": body["model"], **usage}
        choice = {"index": 0, "message": {"role": "assistant", "content": text}, "finish_reason": "stop"}
        return _completion(body) | {"object": "chat.completion", "choices": [choice], **usage}

    async def _paced(self, events: list[bytes]) -> AsyncIterator[bytes]:
        for _ in range(self.large >> 16):
            yield b'data: {"choices": [{"index": 0, "delta": {"content": "' + b"x" * (1 << 16) + b'"}}]}\n\n'
        for event in events[: self.breaks_off]:
            yield event
            await asyncio.sleep(self.pause)
        self.finished_streams += 1

    def _chat(self, body: Any) -> list[bytes]:
        chunk = _completion(body) | {"object": "chat.completion.chunk", "usage": None}
        deltas: list[tuple[Any, str | None]] = [({"content": word}, None) for word in WORDS]
        events = [
            {**chunk, "choices": [{"index": 0, "delta": delta, "finish_reason": reason}]}
            for delta, reason in (*deltas, ({}, "stop"))
        ]
        if self.report_usage and (body.get("stream_options") or {}).get("include_usage"):
            events.append({**chunk, "choices": [], "usage": self.usage or OPENAI_USAGE})
        return [*(b"data: " + json.dumps(event).encode() + b"\n\n" for event in events), b"data: [DONE]\n\n"]

    def _responses(self, body: Any) -> list[bytes]:
        begun, said = _response(body) | {"status": "in_progress"}, _said("".join(WORDS))
        place = {"item_id": said["id"], "output_index": 0, "content_index": 0}
        (part,) = said["content"]
        events: list[Any] = [
            {"type": "response.created", "response": begun},
            {"type": "response.output_item.added", "output_index": 0, "item": {**said, "content": []}},
            {"type": "response.content_part.added", **place, "part": {**part, "text": ""}},
        ]
        events += [{"type": "response.output_text.delta", **place, "delta": word, "logprobs": []} for word in WORDS]
        events += [
            {"type": "response.output_item.done", "output_index": 0, "item": said},
            {
                "type": "response.completed",
                "response": _response(body) | {"output": [said], "usage": self.usage or RESPONSES_USAGE},
            },
        ]
        return [_named({**event, "sequence_number": at}) for at, event in enumerate(events)]

    def _anthropic(self, body: Any) -> list[bytes]:
        start = {**(self.usage or ANTHROPIC_USAGE), "output_tokens": 1}
        block = {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}}
        deltas = [{"type": "text_delta", "text": word} for word in WORDS]
        end = {"stop_reason": "end_turn", "stop_sequence": None}
        events: list[Any] = [{"type": "message_start", "message": _message(body) | {"usage": start}}, block]
        events += [{"type": "content_block_delta", "index": 0, "delta": delta} for delta in deltas]
        events.append({"type": "content_block_stop", "index": 0})
        events.append({"type": "message_delta", "delta": end, "usage": self.usage or {"output_tokens": 50}})
        events.append({"type": "message_stop"})
        return [_named(event) for event in events]

    def _gemini(self) -> list[bytes]:
        last = len(WORDS) - 1
        events = [_candidate(word, "STOP" if at == last else None) for at, word in enumerate(WORDS)]
        for event in events if self.report_usage else []:
            event["usageMetadata"] = {"promptTokenCount": 1000, "totalTokenCount": 1000}
            if event is events[-1]:
                event["usageMetadata"] = self.usage or GEMINI_USAGE
        return [b"data: " + json.dumps(event).encode() + b"\r\n\r\n" for event in events]


def _completion(body: Any) -> dict[str, Any]:
    return {"id": "c", "created": 1, "model": body["model"]}


def _response(body: Any) -> dict[str, Any]:
    answer = {"id": "r", "object": "response", "created_at": 1, "status": "completed", "model": body["model"]}
    return {**answer, "output": [], "parallel_tool_calls": True, "tool_choice": "auto", "tools": []}


def _said(text: str) -> dict[str, Any]:
    content = [{"type": "output_text", "text": text, "annotations": []}]
    return {"type": "message", "id": "m", "role": "assistant", "status": "completed", "content": content}


def _message(body: Any) -> dict[str, Any]:
    message = {"id": "m", "type": "message", "role": "assistant", "model": body["model"], "content": []}
    return {**message, "stop_reason": None, "stop_sequence": None}


def _candidate(text: str, reason: str | None) -> dict[str, Any]:
    end = {"finishReason": reason} if reason else {}
    return {"candidates": [{"index": 0, "content": {"role": "model", "parts": [{"text": text}]}, **end}]}


def _named(event: Any) -> bytes:
    return b"event: " + event["type"].encode() + b"\ndata: " + json.dumps(event).encode() + b"\n\n"


def _bill(path: str, body: dict[str, Any]) -> tuple[str, int, int]:
    """What a provider may bill: a token per byte of text, and all the output that the request allows."""
    if "contents" in body:
        settings = body.get("generationConfig", {})
        output = settings.get("maxOutputTokens", 65_536) * settings.get("candidateCount", 1)
        given = len(json.dumps(body["contents"], ensure_ascii=False).encode())
        return path.rpartition("/")[2].partition(":")[0], given, output
    text = body.get("messages") or body.get("input") or body.get("prompt") or ""
    prompts = body.get("prompt")
    many = len(prompts) if isinstance(prompts, list) and not isinstance(prompts[0], int) else 1
    limits = [body[name] for name in ("max_completion_tokens", "max_output_tokens", "max_tokens") if name in body]
    output = max(limits, default=16_384) * max(body.get("n", 1), body.get("best_of", 1)) * many
    given = len(json.dumps(text, ensure_ascii=False).encode())
    return body["model"], given, 0 if path == "/v1/embeddings" else output


def _usage(path: str, given: int, output: int) -> dict[str, int]:
    if path.endswith(":generateContent"):
        return {"promptTokenCount": given, "thoughtsTokenCount": output, "totalTokenCount": given + output}
    if path in ("/v1/messages", "/v1/responses"):
        return {"input_tokens": given, "output_tokens": output}
    return {"prompt_tokens": given, "completion_tokens": output, "total_tokens": given + output}
