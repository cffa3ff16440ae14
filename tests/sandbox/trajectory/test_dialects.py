"""What agents and models say is read from the transcripts of the real gateway, in every API, streamed or whole."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from sandbox.services.run_services import RECORDS
from sandbox.trajectory.calls import Call, calls_of
from sandbox.trajectory.messages import Message, ToolCall
from sandbox.trajectory.requests import messages_of
from sandbox.trajectory.responses import message_of
from tests.sandbox.gateway.conftest import Gateway, gateway, llm

__all__ = ["gateway", "llm"]

ASKED = (Message("user", "Solve it."),)
SAID = "def solve(): return 42"


def calls(gate: Gateway) -> list[Call]:
    gate.services.close()
    folder = gate.workdir / RECORDS
    with (folder / "gateway.jsonl").open("rb") as journal, (folder / "transcripts.jsonl").open("rb") as transcripts:
        return list(calls_of(journal, transcripts))


@pytest.mark.parametrize("stream", [False, True])
def test_every_api_is_read(gateway: Callable[..., Gateway], stream: bool) -> None:
    gate = gateway(transcripts=True)
    gate.chat(stream=stream)
    gate.message(stream=stream)
    gate.http.post("/v1/responses", json={"model": "gpt-4o", "input": "Solve it.", "stream": stream})
    gate.http.post("/v1/completions", json={"model": "gpt-3.5-turbo-instruct", "prompt": "Solve it.", "stream": stream})
    gate.generate(stream=stream)
    found = calls(gate)
    assert [call.asked for call in found] == [ASKED] * 5
    assert [call.answer for call in found] == [Message("assistant", SAID)] * 5
    assert [(call.input_tokens, call.output_tokens) for call in found] == [(1000, 50)] * 5
    assert {call.cached_tokens for call in found} == {400}
    assert all(call.cost_usd for call in found)
    assert {call.status for call in found} == {"ok"}


def test_calls_without_a_transcript_and_without_an_answer(gateway: Callable[..., Gateway], llm: Any) -> None:
    gate = gateway(transcripts=True, requests=2)
    gate.chat()
    llm.fail = (500, {"error": {"message": "out of order"}})
    gate.chat()
    gate.chat()
    done, failed, refused = calls(gate)
    assert (done.answer, failed.answer) == (Message("assistant", SAID), None)
    assert failed.status == "error"
    assert refused.refused
    assert refused.asked is None
    assert "used up" in str(refused.message)


TOOL = ToolCall("c1", "bash", {"command": "ls"})
ARGUMENTS = json.dumps(TOOL.arguments)
CALLED = Message("assistant", "Let me look.", "I should look.", (TOOL,))
CONVERSATION = [
    Message("system", "Be brief."),
    Message("user", "Go.\n[image]"),
    CALLED,
    Message("tool", "train.csv", call_id="c1"),
]
CHAT = {
    "messages": [
        {"role": "system", "content": "Be brief."},
        {
            "role": "user",
            "content": [{"type": "text", "text": "Go."}, {"type": "image_url", "image_url": {"url": "data:..."}}],
        },
        {
            "role": "assistant",
            "content": "Let me look.",
            "reasoning_content": "I should look.",
            "tool_calls": [{"id": "c1", "type": "function", "function": {"name": "bash", "arguments": ARGUMENTS}}],
        },
        {"role": "tool", "tool_call_id": "c1", "content": "train.csv"},
    ]
}
ANTHROPIC = {
    "system": [{"type": "text", "text": "Be brief."}],
    "messages": [
        {
            "role": "user",
            "content": [{"type": "text", "text": "Go."}, {"type": "image", "source": {"type": "base64", "data": ""}}],
        },
        {
            "role": "assistant",
            "content": [
                {"type": "thinking", "thinking": "I should look."},
                {"type": "text", "text": "Let me look."},
                {"type": "tool_use", "id": "c1", "name": "bash", "input": {"command": "ls"}},
            ],
        },
        {
            "role": "user",
            "content": [
                {"type": "tool_result", "tool_use_id": "c1", "content": [{"type": "text", "text": "train.csv"}]}
            ],
        },
    ],
}
ITEMS = [
    {"type": "reasoning", "summary": [{"type": "summary_text", "text": "I should look."}]},
    {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "Let me look."}]},
    {"type": "function_call", "call_id": "c1", "name": "bash", "arguments": ARGUMENTS},
]
RESPONSES = {
    "instructions": "Be brief.",
    "input": [
        {
            "role": "user",
            "content": [{"type": "input_text", "text": "Go."}, {"type": "input_image", "image_url": "data:..."}],
        },
        *ITEMS,
        {"type": "function_call_output", "call_id": "c1", "output": "train.csv"},
    ],
}
GEMINI = {
    "systemInstruction": {"parts": [{"text": "Be brief."}]},
    "contents": [
        {"role": "user", "parts": [{"text": "Go."}, {"inlineData": {"data": ""}}]},
        {
            "role": "model",
            "parts": [
                {"text": "I should look.", "thought": True},
                {"text": "Let me look."},
                {"functionCall": {"id": "c1", "name": "bash", "args": {"command": "ls"}}},
            ],
        },
        {
            "role": "user",
            "parts": [{"functionResponse": {"id": "c1", "name": "bash", "response": "train.csv"}}],
        },
    ],
}


@pytest.mark.parametrize("body", [CHAT, ANTHROPIC, RESPONSES, GEMINI], ids=["chat", "anthropic", "responses", "gemini"])
def test_a_conversation_is_the_same_in_every_api(body: Any) -> None:
    assert messages_of(body) == CONVERSATION


def stream(*events: Any) -> str:
    return "".join(f"data: {json.dumps(event)}\n\n" for event in events) + "data: [DONE]\n\n"


ANSWERS: dict[str, Any] = {
    "chat": {"choices": [{"message": CHAT["messages"][2]}]},
    "anthropic": {"content": ANTHROPIC["messages"][1]["content"]},  # type: ignore[index]
    "responses": {"output": ITEMS},
    "gemini": {"candidates": [{"content": GEMINI["contents"][1]}]},  # type: ignore[index]
    "chat, streamed": stream(
        {"choices": [{"delta": {"reasoning_content": "I should"}}]},
        {"choices": [{"delta": {"reasoning_content": " look."}}]},
        {"choices": [{"delta": {"content": "Let me "}}]},
        {"choices": [{"delta": {"content": "look."}}]},
        {
            "choices": [
                {"delta": {"tool_calls": [{"index": 0, "id": "c1", "function": {"name": "bash", "arguments": ""}}]}}
            ]
        },
        {"choices": [{"delta": {"tool_calls": [{"index": 0, "function": {"arguments": ARGUMENTS}}]}}]},
        {"choices": [], "usage": {}},
    ),
    "anthropic, streamed": stream(
        {"type": "content_block_start", "index": 0, "content_block": {"type": "thinking", "thinking": ""}},
        {"type": "content_block_delta", "index": 0, "delta": {"type": "thinking_delta", "thinking": "I should look."}},
        {"type": "content_block_start", "index": 1, "content_block": {"type": "text", "text": ""}},
        {"type": "content_block_delta", "index": 1, "delta": {"type": "text_delta", "text": "Let me look."}},
        {
            "type": "content_block_start",
            "index": 2,
            "content_block": {"type": "tool_use", "id": "c1", "name": "bash", "input": {}},
        },
        {
            "type": "content_block_delta",
            "index": 2,
            "delta": {"type": "input_json_delta", "partial_json": ARGUMENTS},
        },
    ),
    "responses, streamed": stream({"type": "response.completed", "response": {"output": ITEMS}}),
    "responses, cut": stream(*({"type": "response.output_item.done", "item": item} for item in ITEMS)),
    "gemini, streamed": stream(
        *({"candidates": [{"content": {"parts": [part]}}]} for part in GEMINI["contents"][1]["parts"])  # type: ignore[index]
    ),
}


@pytest.mark.parametrize("response", ANSWERS.values(), ids=ANSWERS)
def test_an_answer_is_the_same_in_every_api(response: Any) -> None:
    assert message_of(response) == CALLED


@pytest.mark.parametrize(
    "body",
    [
        None,
        [],
        {"messages": "x"},
        {"messages": [1, None, {"role": 3, "content": {"a": 1}}, {"role": "tool"}]},
        {"input": [{"type": "function_call"}, {"type": "x_output"}, {"type": "reasoning", "summary": 3}]},
        {"messages": [{"role": "assistant", "tool_calls": [{"function": 3}, 4], "function_call": {"arguments": "{"}}]},
        {"contents": [{"role": "model", "parts": [{"functionCall": {"args": [1]}}]}, {"parts": 4}], "system": 5},
        {"prompt": [1, 2, 3]},
    ],
)
def test_what_has_no_known_form_does_no_harm(body: Any) -> None:
    messages_of(body)
    message_of(body)
    message_of(json.dumps(body))
    message_of(f"data: {json.dumps(body)}\n")
    message_of({"choices": [{"delta": body}], "content": [body], "output": body})
    message_of(stream({"choices": [{"delta": body}]}, {"type": "content_block_start", "content_block": body}))
