"""The tools that agents may offer to a model: by their exact types, with exactly the fields that each type has.

Agents run these tools themselves. Providers run the others, which reach the internet or stored objects, and providers
keep adding new ones (`web_search_20260318`, `bash_code_execution`): a type or a field that is not listed here is
refused, even if it resembles one that is.
"""

from __future__ import annotations

from typing import Any

from common.providers import Api
from sandbox.gateway.content import Refused

_FUNCTION = "name description parameters strict cache_control"
_ANTHROPIC = "type name cache_control defer_loading input_examples strict"
_DISPLAY = f"{_ANTHROPIC} display_width_px display_height_px display_number"


def _fields(table: dict[str, str]) -> dict[str, frozenset[str]]:
    return {name: frozenset(fields.split()) for name, fields in table.items()}


TOOLS: dict[Api, dict[str, frozenset[str]]] = {
    "openai": _fields(
        {
            # The fields of a function are in `function` in a chat, and next to `type` in the responses API.
            "function": f"type function {_FUNCTION} defer_loading",
            "custom": "type custom name description format defer_loading cache_control",
            "local_shell": "type",
            "apply_patch": "type",
            "computer": "type display_width display_height environment",
            "computer_use_preview": "type display_width display_height environment",
        }
    ),
    "anthropic": _fields(
        {
            "custom": f"{_ANTHROPIC} description input_schema eager_input_streaming",
            "bash_20241022": _ANTHROPIC,
            "bash_20250124": _ANTHROPIC,
            "text_editor_20241022": _ANTHROPIC,
            "text_editor_20250124": _ANTHROPIC,
            "text_editor_20250429": _ANTHROPIC,
            "text_editor_20250728": f"{_ANTHROPIC} max_characters",
            "memory_20250818": _ANTHROPIC,
            "computer_20241022": _DISPLAY,
            "computer_20250124": _DISPLAY,
            "computer_20251124": f"{_DISPLAY} enable_zoom",
        }
    ),
}
"""The fields of each type of tool that the agent runs itself."""
_WITHIN = _fields(
    {
        "function": _FUNCTION,
        "custom": "name description format cache_control",
        "format": "type syntax definition grammar",
        "grammar": "syntax definition",
    }
)
"""The fields of the objects in a tool, by the name of the field with the object, without schemas of arguments."""
_CHOICES: dict[Api, frozenset[str]] = {
    "openai": frozenset(TOOLS["openai"]) | {"allowed_tools"},
    "anthropic": frozenset(("auto", "any", "tool", "none")),
}
_CHOICE_FIELDS = frozenset(
    ["type", "name", "function", "custom", "allowed_tools", "mode", "tools", "disable_parallel_tool_use"]
)


def check_tools(api: Api, body: dict[str, Any]) -> None:
    """Check the tools of a request, the older `functions` of a chat, and the tools that the model is told to use.

    Raises:
        Refused: a tool is not one that the agent runs itself, or has a field that is not on its list.
    """
    for tool in _list(body.get("tools"), "tools"):
        _tool(api, tool)
    for function in _list(body.get("functions"), "functions"):
        _within("function", function)
    choice = body.get("tool_choice")
    if choice is not None and not isinstance(choice, str):
        _choice(api, choice)


def _tool(api: Api, tool: Any) -> None:
    if not isinstance(tool, dict):
        raise _unavailable(f"the tool {str(tool)[:60]!r}")
    kind = tool.get("type") or ("custom" if api == "anthropic" else "")
    if not isinstance(kind, str) or kind not in TOOLS[api]:
        raise _unavailable(f"the tool {str(kind)[:60]!r}")
    if unknown := set(tool) - TOOLS[api][kind]:
        raise _unavailable(f"the field {min(unknown)[:60]!r} of a tool")
    for name in _WITHIN:
        if tool.get(name) is not None:
            _within(name, tool[name])


def _within(name: str, value: Any) -> None:
    if not isinstance(value, dict):
        raise _unavailable(f"the form of {name!r} in a tool")
    if unknown := set(value) - _WITHIN[name]:
        raise _unavailable(f"the field {min(unknown)[:60]!r} of {name!r} in a tool")
    for inner in _WITHIN:
        if value.get(inner) is not None:
            _within(inner, value[inner])


def _choice(api: Api, choice: Any) -> None:
    kind = choice.get("type") if isinstance(choice, dict) else None
    if not isinstance(kind, str) or kind not in _CHOICES[api]:
        raise _unavailable(f"the choice of the tool {str(kind)[:60]!r}")
    if unknown := set(choice) - _CHOICE_FIELDS:
        raise _unavailable(f"the field {min(unknown)[:60]!r} of `tool_choice`")
    allowed = choice.get("allowed_tools") or choice
    for tool in _list(allowed.get("tools") if isinstance(allowed, dict) else None, "tools"):
        _choice(api, tool)


def _list(value: Any, name: str) -> list[Any]:
    if value is not None and not isinstance(value, list):
        raise _unavailable(f"the form of `{name}`")
    return value or []


def _unavailable(description: str) -> Refused:
    return Refused(f"{description} is not available here: models may not reach the internet for you")
