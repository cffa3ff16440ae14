"""Check the content of messages: parts of known types with data of their own, no addresses and no stored objects."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from common.providers import Api

BASE64 = re.compile(r"[A-Za-z0-9+/=_\-\s]*\Z")
PICTURES = frozenset(f"image/{kind}" for kind in ("png", "jpeg", "jpg", "gif", "webp"))
"""Types of pictures that models read. A picture of another type, such as SVG, can name addresses."""
DOCUMENTS = frozenset(
    {"application/pdf", "application/json"}
    | {f"text/{kind}" for kind in ("plain", "csv", "tab-separated-values", "markdown", "html", "xml", "x-python")}
)
"""Types of documents. Sound and films cost more than other input, by an amount that is not known in advance."""
_MAX_TYPE_CHARACTERS = 100
"""Characters of the beginning of a `data:` address, in which its type is."""


class Refused(Exception):
    """Content that may not be sent; the message says what and why."""


@dataclass
class Media:
    """The content of a request besides text."""

    images: int = 0
    documents: int = 0
    bytes: int = 0
    """Size of their encoded data."""


_KEYS = {
    # a message of a chat
    "chat": "role content name tool_calls tool_call_id refusal function_call reasoning reasoning_content "
    "reasoning_details annotations cache_control prefix",
    "responses": "type role content id status phase",
    "anthropic": "role content",
    # parts of content
    "text": "type text cache_control citations annotations logprobs",
    "refusal": "type refusal",
    "image_url": "type image_url cache_control",
    "file": "type file cache_control",
    "input_image": "type image_url detail",
    "input_file": "type file_data filename",
    "image": "type source cache_control",
    "document": "type source title context citations cache_control",
    "tool_use": "type id name input cache_control caller",
    "tool_result": "type tool_use_id content is_error cache_control",
    "thinking": "type thinking signature",
    "redacted_thinking": "type data",
    # items of an input
    "function_call": "type id call_id name arguments status namespace",
    "function_call_output": "type id call_id output status",
    "custom_tool_call": "type id call_id name input status namespace",
    "reasoning": "type id summary content encrypted_content status",
    "local_shell_call": "type id call_id action status",
    "apply_patch_call": "type id call_id operation status",
    "computer_call": "type id call_id action actions pending_safety_checks status",
    "computer_call_output": "type id call_id output acknowledged_safety_checks status",
    "computer_screenshot": "type image_url",
}
KEYS = {name: frozenset(keys.split()) for name, keys in _KEYS.items()}
KEYS |= {"input_text": KEYS["text"], "output_text": KEYS["text"], "message": KEYS["responses"]}
KEYS |= {f"{call}_output": KEYS["function_call_output"] for call in ("custom_tool_call", "local_shell_call")}
KEYS["apply_patch_call_output"] = KEYS["function_call_output"]
_PARTS: dict[str, tuple[str, ...]] = {
    "chat": ("text", "refusal", "image_url", "file", "thinking", "redacted_thinking"),
    "responses": ("input_text", "output_text", "refusal", "input_image", "input_file"),
    "anthropic": ("text", "image", "document", "tool_use", "tool_result", "thinking", "redacted_thinking"),
}
_SCHEMAS = ("tools", "functions", "response_format", "guided_json", "text", "output_format", "output_config")
"""Fields that contain JSON schemas, of arguments or of answers."""
_ITEMS = frozenset(
    [
        "message",
        "reasoning",
        "function_call",
        "function_call_output",
        "custom_tool_call",
        "custom_tool_call_output",
        "local_shell_call",
        "local_shell_call_output",
        "apply_patch_call",
        "apply_patch_call_output",
        "computer_call",
        "computer_call_output",
    ]
)
_WITH_OUTPUT = frozenset(
    ("function_call_output", "custom_tool_call_output", "local_shell_call_output", "apply_patch_call_output")
)
_SOURCES = {
    ("image", "base64"): ("type media_type data", PICTURES),
    ("document", "base64"): ("type media_type data", DOCUMENTS),
    ("document", "text"): ("type media_type data", frozenset({"text/plain"})),
    ("document", "content"): ("type content", None),
}
"""The fields of a source, and the types of its data, by the type of the part that it is in and its own."""


def check_content(api: Api, path: str, body: dict[str, Any]) -> Media:
    """Check the content that the model is to read.

    Returns:
        The images and documents in it.

    Raises:
        Refused: a part is of an unknown form, or refers to something that the request does not contain.
    """
    media = Media()
    check_schemas([body.get(name) for name in _SCHEMAS])
    if path == "/responses":
        _items(body.get("input"), media)
    elif path in ("/completions", "/embeddings"):
        _texts(body.get("prompt") if path == "/completions" else body.get("input"))
    else:
        kind = "anthropic" if api == "anthropic" else "chat"
        _messages(kind, body.get("messages"), media)
        _parts(kind, body.get("system"), media)
    return media


def _messages(kind: str, messages: Any, media: Media) -> None:
    for message in _list(messages, "`messages`"):
        _known(message, kind, "a message")
        _parts(kind, message.get("content"), media)


def _items(items: Any, media: Media) -> None:
    if items is None or isinstance(items, str):
        return
    for item in _list(items, "`input`"):
        if not isinstance(item, dict):
            raise Refused("`input` must be a text or a list of objects")
        kind = item.get("type", "message")
        if not isinstance(kind, str) or kind not in _ITEMS or (kind == "message" and "role" not in item):
            raise Refused(f"an item of the type {str(kind)[:60]!r} may not be part of `input`")
        _known(item, kind, "an item of `input`")
        if kind == "message":
            _parts("responses", item.get("content"), media)
        elif kind == "computer_call_output":
            _part(item.get("output"), ("computer_screenshot",), "responses", media)
        elif kind in _WITH_OUTPUT and not isinstance(item.get("output"), str):
            _parts("responses", item.get("output"), media)


def _parts(kind: str, content: Any, media: Media) -> None:
    if content is None or isinstance(content, str):
        return
    for part in _list(content, "content"):
        _part(part, _PARTS[kind], kind, media)


def _part(part: Any, allowed: tuple[str, ...], kind: str, media: Media) -> None:
    name = part.get("type") if isinstance(part, dict) else None
    if name not in allowed:
        raise Refused(f"content of the type {str(name)[:60]!r} may not be sent")
    _known(part, name, f"content of the type {name!r}")
    if name in ("image_url", "input_image", "computer_screenshot"):
        value = part.get("image_url")
        if isinstance(value, dict):
            if unknown := set(value) - {"url", "detail"}:
                raise Refused(f"the field {min(unknown)[:60]!r} may not be part of an image")
            value = value.get("url")
        media.images += 1
        _data(value, media, PICTURES)
    elif name in ("file", "input_file"):
        file = part.get("file") if name == "file" else {key: part[key] for key in part if key != "type"}
        if not isinstance(file, dict) or set(file) - {"filename", "file_data"}:
            raise Refused("a file must be sent as `file_data`")
        media.documents += 1
        _data(file.get("file_data"), media, DOCUMENTS | PICTURES, plain=True)
    elif name in ("image", "document"):
        _source(part.get("source"), name, media)
    elif name == "tool_result":
        _parts(kind, part.get("content"), media)


def _source(source: Any, name: str, media: Media) -> None:
    form = source.get("type") if isinstance(source, dict) else None
    fields, types = _SOURCES.get((name, form), ("", None)) if isinstance(form, str) else ("", None)
    if not fields or set(source) - set(fields.split()):
        raise Refused("an image or a document must be sent as data, not by its address or id")
    if form == "content":
        _parts("anthropic", source.get("content"), media)
        return
    kind, data = source.get("media_type"), source.get("data")
    if types is not None and (not isinstance(kind, str) or kind not in types):
        raise Refused(f"data of the type {str(kind)[:60]!r} may not be sent")
    if not isinstance(data, str) or (form == "base64" and not BASE64.match(data)):
        raise Refused("content must be sent as data in base64")
    if form == "base64":
        media.images += name == "image"
        media.documents += name == "document"
        media.bytes += len(data)


def _data(value: Any, media: Media, types: frozenset[str], *, plain: bool = False) -> None:
    """Check that a value is data in base64 of one of these types; with `plain` possibly without saying its type."""
    text = value if isinstance(value, str) else ""
    comma = text.find(",", 0, _MAX_TYPE_CHARACTERS)
    if not text or (comma < 0 and not plain) or not BASE64.match(text, comma + 1):
        raise Refused("content may not be sent by its address: models may not reach the internet for you; send data")
    if comma >= 0 and text[:comma].lower() not in {f"data:{media_type};base64" for media_type in types}:
        raise Refused(f"data of the type {text[:comma][:60]!r} may not be sent")
    media.bytes += len(text)


def check_schemas(values: list[Any]) -> None:
    """Check that schemas refer to themselves only: some servers fetch the schemas that others refer to."""
    while values:
        value = values.pop()
        if isinstance(value, list):
            values += value
        elif isinstance(value, dict):
            for name in ("$ref", "$dynamicRef", "$recursiveRef"):
                target = value.get(name)
                if isinstance(target, str) and not target.startswith("#"):
                    raise Refused(f"a schema may only refer to itself, not to {target[:60]!r}")
            values += value.values()


def _texts(value: Any) -> None:
    """Check that a prompt is a text, tokens, or a list of either."""
    for prompt in value if isinstance(value, list) else [value]:
        tokens = isinstance(prompt, list) and all(isinstance(token, int) for token in prompt)
        if prompt is not None and not isinstance(prompt, str | int) and not tokens:
            raise Refused("a prompt must be a text, a list of tokens, or a list of these")


def _known(value: Any, kind: str, description: str) -> None:
    if not isinstance(value, dict):
        raise Refused(f"{description} must be an object")
    unknown = {key for key in set(value) - KEYS[kind] if value[key] is not None}
    if unknown:
        raise Refused(f"the field {min(unknown)[:60]!r} may not be part of {description}")


def _list(value: Any, description: str) -> list[Any]:
    if not isinstance(value, list):
        raise Refused(f"{description} must be a list")
    return value
