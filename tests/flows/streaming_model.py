"""A language model that streams a script in the dialects of Anthropic and OpenAI, on loopback, for today's agents.

It calls the agent's shell once in a conversation, and then says that it is done, however often it is asked to go on.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any

import pytest

from common.settings import get_settings

Event = dict[str, Any]
DONE = "The submission is written. There is nothing left to do."


USAGE = {"prompt_tokens": 100, "completion_tokens": 50, "total_tokens": 150}


def chat_answer(body: Event, number: int, say: str, call: Event | None) -> Event:
    """The body of OpenAI's chat completions."""
    message: Event = {"role": "assistant", "content": say, "refusal": None}
    if call:
        function = {"name": call["name"], "arguments": json.dumps(call["input"])}
        message["tool_calls"] = [{"id": call["id"], "type": "function", "function": function}]
    choice = {"index": 0, "message": message, "logprobs": None, "finish_reason": "tool_calls" if call else "stop"}
    answer = {"id": f"chatcmpl-{number}", "object": "chat.completion", "created": 1, "model": body["model"]}
    return {**answer, "choices": [choice], "usage": USAGE}


def chat(body: Event, number: int, say: str, call: Event | None) -> Iterator[Event]:
    """Events of OpenAI's chat completions."""
    whole = chat_answer(body, number, say, call)
    chunk = {**whole, "object": "chat.completion.chunk", "usage": None}
    (choice,) = whole["choices"]

    def choices(delta: Event, reason: str | None = None) -> Event:
        return {**chunk, "choices": [{"index": 0, "delta": delta, "logprobs": None, "finish_reason": reason}]}

    yield choices({"role": "assistant", "content": "", "refusal": None})
    yield choices({"content": say})
    for at, each in enumerate(choice["message"].get("tool_calls", ())):
        function = {"name": each["function"]["name"], "arguments": ""}
        yield choices({"tool_calls": [{"index": at, **each, "function": function}]})
        yield choices({"tool_calls": [{"index": at, "function": {"arguments": each["function"]["arguments"]}}]})
    yield choices({}, choice["finish_reason"])
    if (body.get("stream_options") or {}).get("include_usage"):
        yield {**chunk, "choices": [], "usage": whole["usage"]}


def response(body: Event, number: int, say: str, call: Event | None) -> Event:
    """The body of OpenAI's responses."""
    text = {"type": "output_text", "text": say, "annotations": [], "logprobs": []}
    said = {"type": "message", "id": f"msg_{number}", "role": "assistant", "content": [text], "status": "completed"}
    output: list[Event] = [said]
    if call:
        called = {"type": "function_call", "id": f"fc_{number}", "call_id": call["id"], "name": call["name"]}
        output.append({**called, "arguments": json.dumps(call["input"]), "status": "completed"})
    usage: Event = {"input_tokens": 100, "output_tokens": 50, "total_tokens": 150}
    usage["input_tokens_details"] = {"cached_tokens": 0, "cache_write_tokens": 0}
    usage["output_tokens_details"] = {"reasoning_tokens": 0}
    answer: Event = {"id": f"resp_{number}", "object": "response", "created_at": 1, "status": "completed"}
    answer |= {"error": None, "incomplete_details": None, "instructions": None, "metadata": {}, "model": body["model"]}
    answer |= {"parallel_tool_calls": True, "tool_choice": "auto", "tools": [], "temperature": 1.0, "top_p": 1.0}
    return {**answer, "output": output, "usage": usage}


def responses(body: Event, number: int, say: str, call: Event | None) -> Iterator[Event]:
    """Events of OpenAI's responses."""
    for at, event in enumerate(_responses(response(body, number, say, call))):
        yield {**event, "sequence_number": at}


def _responses(whole: Event) -> Iterator[Event]:
    begun = {**whole, "status": "in_progress", "output": [], "usage": None}
    yield {"type": "response.created", "response": begun}
    yield {"type": "response.in_progress", "response": begun}
    for at, item in enumerate(whole["output"]):
        empty: Event = {"content": []} if item["type"] == "message" else {"arguments": ""}
        started = {**item, **empty, "status": "in_progress"}
        yield {"type": "response.output_item.added", "output_index": at, "item": started}
        place = {"item_id": item["id"], "output_index": at}
        if item["type"] == "message":
            place["content_index"] = 0
            (part,) = item["content"]
            yield {"type": "response.content_part.added", **place, "part": {**part, "text": ""}}
            yield {"type": "response.output_text.delta", **place, "delta": part["text"], "logprobs": []}
            yield {"type": "response.output_text.done", **place, "text": part["text"], "logprobs": []}
            yield {"type": "response.content_part.done", **place, "part": part}
        else:
            given = {"name": item["name"], "arguments": item["arguments"]}
            yield {"type": "response.function_call_arguments.delta", **place, "delta": item["arguments"]}
            yield {"type": "response.function_call_arguments.done", **place, **given}
        yield {"type": "response.output_item.done", "output_index": at, "item": item}
    yield {"type": "response.completed", "response": whole}


def message(body: Event, number: int, say: str, call: Event | None) -> Event:
    """The body of Anthropic's messages."""
    content: list[Event] = [{"type": "text", "text": say}]
    content += [{"type": "tool_use", **call}] if call else []
    answer: Event = {"id": f"msg_{number}", "type": "message", "role": "assistant", "model": body["model"]}
    answer |= {"content": content, "stop_reason": "tool_use" if call else "end_turn", "stop_sequence": None}
    return {**answer, "usage": {"input_tokens": 100, "output_tokens": 50}}


def messages(body: Event, number: int, say: str, call: Event | None) -> Iterator[Event]:
    """Events of Anthropic's messages."""
    whole = message(body, number, say, call)
    usage = {"input_tokens": 100, "output_tokens": 1}
    yield {"type": "message_start", "message": {**whole, "content": [], "stop_reason": None, "usage": usage}}
    empty: Event
    for at, block in enumerate(whole["content"]):
        if block["type"] == "text":
            empty, delta = {"text": ""}, {"type": "text_delta", "text": block["text"]}
        else:
            empty, delta = {"input": {}}, {"type": "input_json_delta", "partial_json": json.dumps(block["input"])}
        yield {"type": "content_block_start", "index": at, "content_block": {**block, **empty}}
        if at == 0:
            yield {"type": "ping"}
        yield {"type": "content_block_delta", "index": at, "delta": delta}
        yield {"type": "content_block_stop", "index": at}
    end = {"stop_reason": whole["stop_reason"], "stop_sequence": None}
    yield {"type": "message_delta", "delta": end, "usage": {"output_tokens": 50}}
    yield {"type": "message_stop"}


DIALECTS = {
    "/chat/completions": (chat, chat_answer),
    "/responses": (responses, response),
    "/messages": (messages, message),
}


class StreamingModel(BaseHTTPRequestHandler):
    """Remembers what it is asked. `program` is what it runs in the agent's shell, by `arguments`."""

    asked: list[Event]
    program: str = ""

    def do_POST(self) -> None:
        """Answer as a stream if that is asked for."""
        body = json.loads(self.rfile.read(int(self.headers["content-length"])))
        path = self.path.partition("?")[0]
        self.asked.append({"body": body, "path": path, "headers": dict(self.headers)})
        if path.endswith("/count_tokens"):
            self._send(json.dumps({"input_tokens": 100}).encode())
            return
        number = len(self.asked)
        say, call = self.script(body)
        stream, whole = next(dialect for end, dialect in DIALECTS.items() if path.endswith(end))
        if not body.get("stream"):
            self._send(json.dumps(whole(body, number, say, call)).encode())
            return
        events = list(stream(body, number, say, call))
        lines = [f"event: {each['type']}\n" if "type" in each else "" for each in events]
        lines = [f"{line}data: {json.dumps(each)}\n\n" for line, each in zip(lines, events, strict=True)]
        if stream is chat:
            lines.append("data: [DONE]\n\n")
        self._send("".join(lines).encode(), "text/event-stream")

    def script(self, body: Event) -> tuple[str, Event | None]:
        """What the model says, and which tool it calls."""
        if not shells(body) or "done-by-the-shell" in told(body):
            return self.ends(body)
        return self.runs(body, "I write a submission.", self.program)

    def ends(self, body: Event) -> tuple[str, Event | None]:
        """It says that it is done."""
        if tools(body) != ["bash"]:
            return DONE, None
        return self.runs(body, DONE, "echo COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT")  # mini-swe-agent asks for a command

    def runs(self, body: Event, say: str, program: str) -> tuple[str, Event]:
        """It runs a program in the agent's shell."""
        name = shells(body)[0]
        return say, {"id": f"call_{len(self.asked)}", "name": name, "input": arguments(name, program)}

    def _send(self, payload: bytes, kind: str = "application/json") -> None:
        with contextlib.suppress(ConnectionError):  # who asked may be gone
            self.send_response(200)
            self.send_header("content-type", kind)
            self.send_header("content-length", str(len(payload)))
            self.end_headers()
            self.wfile.write(payload)

    def log_message(self, *_: Any) -> None:
        """Print nothing."""


@contextmanager
def serving(model: type[StreamingModel], **script: Any) -> Iterator[tuple[str, type[StreamingModel]]]:
    """Its address, and the model with these attributes, which has not been asked anything."""
    handler = type("Model", (model,), {"asked": [], **script})
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}", handler
    finally:
        server.shutdown()
        server.server_close()


def provide(monkeypatch: pytest.MonkeyPatch, url: str) -> None:
    """Make the model at this address the provider of both dialects."""
    for provider, base in (("OPENAI", f"{url}/v1"), ("ANTHROPIC", url)):
        monkeypatch.setenv(f"MLEBENCH_PROVIDERS__{provider}__BASE_URL", base)
        monkeypatch.setenv(f"MLEBENCH_PROVIDERS__{provider}__API_KEY", "the-real-key")
        monkeypatch.setenv(f"MLEBENCH_PROVIDERS__{provider}__PRICE_LIST", provider.lower())
    monkeypatch.setenv("MLEBENCH_PROVIDERS__ANTHROPIC__API", "anthropic")
    get_settings.cache_clear()


def told(body: Event) -> str:
    """What the model is told: the whole conversation, as JSON."""
    return json.dumps(body.get("input") or body.get("messages"))


def tools(body: Event) -> list[str]:
    """The tools that are offered to the model: their names, or types if they have none."""
    named = ({**each, **each.get("function", {})} for each in body.get("tools") or ())
    return [str(each.get("name") or each["type"]) for each in named]


def shells(body: Event) -> list[str]:
    """Those that run commands."""
    return [name for name in tools(body) if name in ("Bash", "bash", "shell", "exec_command", "shell_command")]


def arguments(name: str, command: str) -> Event:
    """The arguments of a shell tool for a command."""
    if name == "shell":
        return {"command": ["bash", "-c", command]}
    if name == "exec_command":
        return {"cmd": command}
    return {"command": command, "description": "write a submission"}
