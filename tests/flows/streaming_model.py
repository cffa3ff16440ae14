"""A language model that streams a script in the dialects of Anthropic and OpenAI, on loopback, for today's agents.

It calls the agent's shell once in a conversation, and then says that it is done, however often it is asked to go on.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler
from typing import Any

Event = dict[str, Any]
DONE = "The submission is written. There is nothing left to do."


def chat(body: Event, say: str, call: Event | None) -> Iterator[Event]:
    """Events of OpenAI's chat completions."""
    chunk = {"id": "c1", "object": "chat.completion.chunk", "created": 1, "model": body["model"]}

    def choice(delta: Event, reason: str | None = None) -> Event:
        return {**chunk, "choices": [{"index": 0, "delta": delta, "finish_reason": reason}]}

    yield choice({"role": "assistant", "content": say})
    if call:
        function = {"name": call["name"], "arguments": json.dumps(call["input"])}
        yield choice({"tool_calls": [{"index": 0, "id": call["id"], "type": "function", "function": function}]})
    yield choice({}, "tool_calls" if call else "stop")
    usage = {"prompt_tokens": 100, "completion_tokens": 50, "total_tokens": 150}
    if (body.get("stream_options") or {}).get("include_usage"):
        yield {**chunk, "choices": [], "usage": usage}


def chat_whole(body: Event, say: str, call: Event | None) -> Event:
    """The same without streaming."""
    message: Event = {"role": "assistant", "content": say}
    if call:
        function = {"name": call["name"], "arguments": json.dumps(call["input"])}
        message["tool_calls"] = [{"id": call["id"], "type": "function", "function": function}]
    answer: Event = {"id": "c", "object": "chat.completion", "created": 1, "model": body["model"]}
    answer["choices"] = [{"index": 0, "finish_reason": "tool_calls" if call else "stop", "message": message}]
    answer["usage"] = {"prompt_tokens": 100, "completion_tokens": 50, "total_tokens": 150}
    return answer


def responses(body: Event, say: str, call: Event | None) -> Iterator[Event]:
    """Events of OpenAI's responses."""
    answer: Event = {"id": "r1", "object": "response", "created_at": 1, "model": body["model"], "output": []}
    yield {"type": "response.created", "response": {**answer, "status": "in_progress"}}
    text = {"type": "output_text", "text": say, "annotations": []}
    said: Event = {"type": "message", "id": "m1", "role": "assistant", "content": [text], "status": "completed"}
    items = [said]
    if call:
        item = {"type": "function_call", "id": "f1", "call_id": call["id"], "name": call["name"]}
        items.append({**item, "arguments": json.dumps(call["input"]), "status": "completed"})
    for at, item in enumerate(items):
        empty: Event = {"content": []} if item["type"] == "message" else {"arguments": ""}
        started = {**item, **empty, "status": "in_progress"}
        yield {"type": "response.output_item.added", "output_index": at, "item": started}
        if item["type"] == "message":
            place = {"item_id": "m1", "output_index": at, "content_index": 0}
            yield {"type": "response.output_text.delta", **place, "delta": say}
        yield {"type": "response.output_item.done", "output_index": at, "item": item}
    usage: Event = {"input_tokens": 100, "output_tokens": 50, "total_tokens": 150}
    usage |= {"input_tokens_details": {"cached_tokens": 0}, "output_tokens_details": {"reasoning_tokens": 0}}
    yield {"type": "response.completed", "response": {**answer, "output": items, "status": "completed", "usage": usage}}


def messages(body: Event, say: str, call: Event | None) -> Iterator[Event]:
    """Events of Anthropic's messages."""
    start: Event = {"id": "msg_1", "type": "message", "role": "assistant", "model": body["model"], "content": []}
    start |= {"stop_reason": None, "stop_sequence": None, "usage": {"input_tokens": 100, "output_tokens": 1}}
    yield {"type": "message_start", "message": start}
    yield {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}}
    yield {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": say}}
    yield {"type": "content_block_stop", "index": 0}
    if call:
        block = {"type": "tool_use", "id": call["id"], "name": call["name"], "input": {}}
        delta = {"type": "input_json_delta", "partial_json": json.dumps(call["input"])}
        yield {"type": "content_block_start", "index": 1, "content_block": block}
        yield {"type": "content_block_delta", "index": 1, "delta": delta}
        yield {"type": "content_block_stop", "index": 1}
    end: Event = {"stop_reason": "tool_use" if call else "end_turn", "stop_sequence": None}
    yield {"type": "message_delta", "delta": end, "usage": {"output_tokens": 50}}
    yield {"type": "message_stop"}


STREAMS = {"/chat/completions": chat, "/responses": responses, "/messages": messages}


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
        say, call = self.script(body)
        stream = next(events for end, events in STREAMS.items() if path.endswith(end))
        if not body.get("stream"):
            self._send(json.dumps(chat_whole(body, say, call)).encode())
            return
        events = list(stream(body, say, call))
        lines = [f"event: {each['type']}\n" if "type" in each else "" for each in events]
        lines = [f"{line}data: {json.dumps(each)}\n\n" for line, each in zip(lines, events, strict=True)]
        if stream is chat:
            lines.append("data: [DONE]\n\n")
        self._send("".join(lines).encode(), "text/event-stream")

    def script(self, body: Event) -> tuple[str, Event | None]:
        """What the model says, and which tool it calls."""
        names = shells(body)
        if names and "done-by-the-shell" in json.dumps(body.get("input") or body.get("messages")):
            if tools(body) != ["bash"]:
                return DONE, None
            end = {"command": "echo COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT"}  # mini-swe-agent asks for a command
            return DONE, {"id": f"call_{len(self.asked)}", "name": names[0], "input": end}
        if not names:
            return DONE, None
        return "I write a submission.", {"id": "call_1", "name": names[0], "input": arguments(names[0], self.program)}

    def _send(self, payload: bytes, kind: str = "application/json") -> None:
        self.send_response(200)
        self.send_header("content-type", kind)
        self.send_header("content-length", str(len(payload)))
        self.end_headers()
        self.wfile.write(payload)

    def log_message(self, *_: Any) -> None:
        """Print nothing."""


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
