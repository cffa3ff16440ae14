"""The messages of requests, in the forms of the APIs that the gateway speaks."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from sandbox.trajectory.messages import Message, Role, ToolCall, arguments_of, plain

_ROLES: dict[str, Role] = {"developer": "system", "system": "system", "assistant": "assistant", "model": "assistant"}
_TOOL_CALLS = ("function_call", "custom_tool_call", "local_shell_call", "apply_patch_call", "computer_call")


def messages_of(body: Any) -> list[Message]:
    """The messages of a request's body. Content that is no message in any of the forms is left out."""
    if not isinstance(body, dict):
        return []
    messages: list[Message] = []
    for name in ("system", "instructions", "systemInstruction"):
        value = body.get(name)
        text = text_of(value.get("parts") if isinstance(value, dict) else value)
        messages += [Message("system", text)] if text else []
    items = body.get("input") if "input" in body else body.get("messages", body.get("contents"))
    if items is None:
        items = body.get("prompt")
    for item in items if isinstance(items, list) else [items]:
        for message in [Message("user", plain(item))] if isinstance(item, str) else _item(item):
            if messages and message.role == messages[-1].role == "assistant":  # the items of one answer
                message = _both(messages.pop(), message)
            messages.append(message)
    return messages


def _both(first: Message, second: Message) -> Message:
    texts, thoughts = (first.text, second.text), (first.reasoning, second.reasoning)
    calls = first.calls + second.calls
    return Message("assistant", "\n".join(filter(None, texts)), "\n".join(filter(None, thoughts)), calls)


def answer_of(content: Any) -> Message:
    """A model's message, from the list of its parts or items in any of the forms."""
    parts = [part for part in content if isinstance(part, dict)] if isinstance(content, list) else []
    texts, thoughts, calls = [], [], []
    for number, part in enumerate(parts):
        kind = str(part.get("type", ""))
        if kind in ("thinking", "reasoning") or part.get("thought") is True:
            thoughts.append(text_of(part.get("thinking") or part.get("summary") or part.get("text")))
        elif kind == "tool_use" or kind in _TOOL_CALLS or isinstance(part.get("functionCall"), dict):
            calls.append(_call(part, number))
        elif kind == "message":
            texts.append(text_of(part.get("content")))
        else:
            texts.append(text_of([part]))
    return Message("assistant", "\n".join(filter(None, texts)), "\n".join(filter(None, thoughts)), tuple(calls))


def chat_message(message: dict[str, Any]) -> Message:
    """A model's message in the form of chats, whether in a request or in a response."""
    tool_calls = message.get("tool_calls")
    calls = [call for call in tool_calls if isinstance(call, dict)] if isinstance(tool_calls, list) else []
    if isinstance(message.get("function_call"), dict):
        calls.append({"id": "", "function": message["function_call"]})
    parsed_calls = []
    for number, call in enumerate(calls):
        inner = call.get("function") or call.get("custom")
        function = inner if isinstance(inner, dict) else {}
        parsed_calls.append(_named(call.get("id"), function.get("name"), function.get("arguments"), number))
    reasoning = message.get("reasoning_content") or message.get("reasoning")
    return Message(
        "assistant",
        text_of(message.get("content")) or text_of(message.get("refusal")),
        text_of(reasoning),
        tuple(parsed_calls),
    )


def text_of(value: Any) -> str:
    """The text of content: a text, or a list of parts. Images and documents are named, not kept."""
    if isinstance(value, str):
        return str(plain(value))
    if not isinstance(value, list):
        return ""
    return "\n".join(filter(None, map(_part_text, value)))


def _part_text(part: Any) -> str:
    if isinstance(part, str):
        return str(plain(part))
    if not isinstance(part, dict):
        return ""
    for name in ("text", "refusal", "thinking"):
        if isinstance(part.get(name), str):
            return str(plain(part[name]))
    kind = str(part.get("type") or next(iter(part), ""))
    if "image" in kind or kind in ("inlineData", "computer_screenshot"):
        return "[image]"
    return f"[{plain(kind)}]" if kind in ("file", "input_file", "document") else ""


def _item(item: Any) -> list[Message]:
    """The messages of one item of a conversation: several, if it contains results of tools beside text."""
    if not isinstance(item, dict):
        return []
    kind, role = str(item.get("type", "message")), str(item.get("role", ""))
    if kind.endswith("_output"):
        return [_result(item.get("call_id"), item.get("output"))]
    if kind == "reasoning" or kind in _TOOL_CALLS:
        return [answer_of([item])]
    content = item.get("parts") if "parts" in item else item.get("content")
    if role == "tool" or role == "function":
        return [_result(item.get("tool_call_id") or item.get("name"), content)]
    if _ROLES.get(role) == "assistant":
        has_parts = isinstance(content, list) and ("tool_calls" not in item)
        return [answer_of(content) if has_parts else chat_message(item)]
    results = list(_results(content))
    rest = [part for part in content if not _is_result(part)] if isinstance(content, list) else content
    text = text_of(rest)
    return [*results, *([Message(_ROLES.get(role, "user"), text)] if text or not results else [])]


def _is_result(part: Any) -> bool:
    return isinstance(part, dict) and (part.get("type") == "tool_result" or "functionResponse" in part)


def _results(content: Any) -> Iterator[Message]:
    for part in filter(_is_result, content if isinstance(content, list) else []):
        inner = part.get("functionResponse")
        if isinstance(inner, dict):
            yield _result(inner.get("id") or inner.get("name"), [{"text": str(plain(inner.get("response")))}])
        else:
            yield _result(part.get("tool_use_id"), part.get("content"))


def _result(call_id: Any, output: Any) -> Message:
    output = [output] if isinstance(output, dict) else output
    return Message("tool", text_of(output), call_id=str(plain(call_id or "")))


def _call(part: dict[str, Any], number: int) -> ToolCall:
    inner = part.get("functionCall")
    if isinstance(inner, dict):
        return _named(inner.get("id") or inner.get("name"), inner.get("name"), inner.get("args"), number)
    arguments: Any = next(
        (part[field] for field in ("input", "arguments", "action", "operation", "actions") if field in part), {}
    )
    return _named(part.get("call_id") or part.get("id"), part.get("name") or part.get("type"), arguments, number)


def _named(call_id: Any, name: Any, arguments: Any, number: int) -> ToolCall:
    return ToolCall(str(plain(call_id or f"call-{number}")), str(plain(name or "unknown")), arguments_of(arguments))
