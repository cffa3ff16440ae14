"""The model's message of responses, whole or streamed, in the forms of the APIs that the gateway speaks."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from sandbox.trajectory.messages import Message
from sandbox.trajectory.requests import answer_of, chat_message, text_of


def message_of(response: Any) -> Message | None:
    """The model's message; None if the response has none, for example because it reports an error.

    Of several choices, it is the first.
    """
    if isinstance(response, str):
        return _streamed(list(_events(response)))
    if not isinstance(response, dict):
        return None
    if isinstance(response.get("output"), list):
        return answer_of(response["output"])
    if isinstance(response.get("content"), list):
        return answer_of(response["content"])
    first = _first(response.get("choices")) or _first(response.get("candidates"))
    content = first.get("content")
    if isinstance(content, dict):
        return answer_of(content.get("parts"))
    if isinstance(first.get("message"), dict):
        return chat_message(first["message"])
    return Message("assistant", text_of(first["text"])) if "text" in first else None


def _events(text: str) -> Iterator[dict[str, Any]]:
    """The data of the events of a stream."""
    for line in text.splitlines():
        if line.startswith("data:"):
            try:
                event = json.loads(line[5:])
            except (ValueError, RecursionError):  # [DONE], or an event that was cut
                continue
            if isinstance(event, dict):
                yield event


def _streamed(events: list[dict[str, Any]]) -> Message | None:
    for event in events:  # a stream of the responses API ends with the whole response
        response = event.get("response") if event.get("type") in ("response.completed", "response.incomplete") else None
        if isinstance(response, dict) and (message := message_of(response)) is not None:
            return message
    items = [event["item"] for event in events if event.get("type") == "response.output_item.done" and "item" in event]
    if items:
        return answer_of(items)
    texts = [
        event["delta"] for event in events if event.get("type") == "response.output_text.delta" and "delta" in event
    ]
    if texts:  # of a stream that was cut
        return Message("assistant", "".join(map(text_of, texts)))
    if any(str(event.get("type")).startswith("content_block_") for event in events):
        return _blocks(events)
    parts = [part for event in events for part in _parts(event)]
    if parts:
        return answer_of(_joined(parts))
    deltas = [
        first["delta"] for event in events if isinstance((first := _first(event.get("choices"))).get("delta"), dict)
    ]
    if deltas:
        return _chat(deltas)
    texts = [text_of(first["text"]) for event in events if "text" in (first := _first(event.get("choices")))]
    return Message("assistant", "".join(texts)) if texts else None


def _blocks(events: list[dict[str, Any]]) -> Message:
    """The content blocks of a streamed message of Anthropic's API."""
    blocks: dict[Any, dict[str, Any]] = {}
    arguments: dict[Any, str] = {}
    for event in events:
        number = event.get("index")
        if event.get("type") == "content_block_start" and isinstance(event.get("content_block"), dict):
            blocks[number] = dict(event["content_block"])
        delta = event.get("delta")
        if event.get("type") != "content_block_delta" or not isinstance(delta, dict):
            continue
        block = blocks.setdefault(number, {"type": "text"})
        for name in ("text", "thinking"):
            if isinstance(delta.get(name), str):
                block[name] = str(block.get(name) or "") + delta[name]
        if isinstance(delta.get("partial_json"), str):
            arguments[number] = arguments.get(number, "") + delta["partial_json"]
    for number, text in arguments.items():
        blocks[number]["input"] = text
    return answer_of(list(blocks.values()))


def _parts(event: dict[str, Any]) -> list[dict[str, Any]]:
    """The parts of an event of Gemini's API."""
    content = _first(event.get("candidates")).get("content")
    parts = content.get("parts") if isinstance(content, dict) else None
    return [part for part in parts if isinstance(part, dict)] if isinstance(parts, list) else []


def _joined(parts: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Successive parts of text as one."""
    joined: list[dict[str, Any]] = []
    for part in parts:
        last = joined[-1] if joined else {}
        are_texts = isinstance(part.get("text"), str) and isinstance(last.get("text"), str)
        if are_texts and part.get("thought") == last.get("thought"):
            last["text"] += part["text"]
        else:
            joined.append(dict(part))
    return joined


def _chat(deltas: list[dict[str, Any]]) -> Message:
    """The message of a streamed chat."""
    texts: dict[str, str] = {"content": "", "reasoning_content": "", "refusal": ""}
    calls: dict[Any, dict[str, Any]] = {}
    for delta in deltas:
        for name, value in (*delta.items(), ("reasoning_content", delta.get("reasoning"))):
            if name in texts and isinstance(value, str):
                texts[name] += value
        tool_calls = delta.get("tool_calls")
        for call_delta in tool_calls if isinstance(tool_calls, list) else []:
            if not isinstance(call_delta, dict):
                continue
            call = calls.setdefault(
                call_delta.get("index", len(calls)), {"id": "", "function": {"name": "", "arguments": ""}}
            )
            call["id"] = call["id"] or call_delta.get("id") or ""
            function = call_delta.get("function")
            for name in ("name", "arguments"):
                if isinstance(function, dict) and isinstance(function.get(name), str):
                    call["function"][name] += function[name]
    return chat_message({**texts, "tool_calls": list(calls.values())})


def _first(value: Any) -> dict[str, Any]:
    """The first choice of a response; empty if there is none."""
    return value[0] if isinstance(value, list) and value and isinstance(value[0], dict) else {}
