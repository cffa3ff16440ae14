"""Check requests of Gemini's API, and bring them into the one spelling that is sent.

Google's servers accept each field in two spellings (`fileData`, `file_data`) and one object for a list of one. A
request is therefore brought into one form first. Fields that are not listed here are refused.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from common.providers import Provider
from sandbox.gateway.content import BASE64, DOCUMENTS, PICTURES, Media, Refused, check_schemas
from sandbox.gateway.tokens import is_count

_PLAIN, _ANY, _LIST = "plain", "any", "list"
"""Kinds of values: a text, number or truth value; any JSON; a list of plain values."""
_REQUEST = {
    "contents": "content*",
    "systemInstruction": "content",
    "tools": "tool*",
    "toolConfig": "toolConfig",
    "safetySettings": "safetySetting*",
    "generationConfig": "generationConfig",
}


def _plain(names: str) -> dict[str, str]:
    return dict.fromkeys(names.split(), _PLAIN)


SHAPES: dict[str, dict[str, str]] = {
    "generateContent": _REQUEST,
    "countTokens": {"contents": "content*", "generateContentRequest": "countedRequest"},
    "countedRequest": {**_REQUEST, "model": _PLAIN},
    "content": {"role": _PLAIN, "parts": "part*"},
    "part": {
        **_plain("text thought thoughtSignature"),
        "inlineData": "inlineData",
        "functionCall": "functionCall",
        "functionResponse": "functionResponse",
    },
    "inlineData": _plain("mimeType data displayName"),
    "functionCall": {**_plain("id name"), "args": _ANY},
    "functionResponse": {**_plain("id name"), "response": _ANY, "parts": "functionResponsePart*"},
    "functionResponsePart": {"inlineData": "inlineData"},
    "tool": {"functionDeclarations": "functionDeclaration*"},
    "functionDeclaration": {
        **_plain("name description behavior"),
        **dict.fromkeys(("parameters", "parametersJsonSchema", "response", "responseJsonSchema"), _ANY),
    },
    "toolConfig": {"functionCallingConfig": "functionCallingConfig"},
    "functionCallingConfig": {"mode": _PLAIN, "allowedFunctionNames": _LIST},
    "safetySetting": _plain("category threshold method"),
    "generationConfig": {
        **_plain("temperature topP topK candidateCount maxOutputTokens seed presencePenalty frequencyPenalty"),
        **_plain("responseMimeType responseLogprobs logprobs mediaResolution"),
        **dict.fromkeys(("responseSchema", "responseJsonSchema"), _ANY),
        **dict.fromkeys(("stopSequences", "responseModalities"), _LIST),
        "thinkingConfig": "thinkingConfig",
    },
    "thinkingConfig": _plain("thinkingBudget thinkingLevel includeThoughts"),
}
_WITH_HOSTED_TOOLS = frozenset({"part", "tool", "toolConfig", "functionResponsePart"})
"""Kinds of objects that may have other fields, too, if providers may run tools for agents."""
_SCHEMAS = ("parameters", "parametersJsonSchema", "response", "responseJsonSchema", "responseSchema")


@dataclass
class _Reading:
    """A request while it is read."""

    hosted_tools: bool
    media: Media


def checked(
    path: str, body: dict[str, Any], model: str, provider: Provider, *, hosted_tools: bool
) -> tuple[dict[str, Any], Media]:
    """A request in the form in which it is sent, and the media in it.

    Raises:
        Refused: it asks for something that is not allowed, or that has no price known in advance.
    """
    reading = _Reading(hosted_tools, Media())
    counting = path.endswith(":countTokens")
    shape = SHAPES["countTokens" if counting else "generateContent"]
    fields = _fields(shape | dict.fromkeys(provider.fields, _ANY), body, "the request", reading)
    if counting:
        if "generateContentRequest" in fields:
            fields["generateContentRequest"]["model"] = f"models/{model}"
        return fields, reading.media
    _check_values(fields.get("generationConfig", {}))
    return fields, reading.media


def _object(kind: str, value: Any, reading: _Reading) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise Refused(f"{kind!r} must be an object")
    open_ended = reading.hosted_tools and kind in _WITH_HOSTED_TOOLS
    fields = _fields(SHAPES[kind], value, repr(kind), reading, open_ended=open_ended)
    if kind == "inlineData":
        _count(fields, reading)
    elif kind == "part" and fields.keys() - SHAPES["part"].keys():
        reading.media.documents += 1  # of unknown kind
    check_schemas([fields[name] for name in _SCHEMAS if name in fields and kind != "functionResponse"])
    return fields


def _fields(
    shape: dict[str, str], value: dict[str, Any], description: str, reading: _Reading, *, open_ended: bool = False
) -> dict[str, Any]:
    fields: dict[str, Any] = {}
    for original_name, field_value in value.items():
        name = _spelled(original_name)
        if field_value is None:  # counts as a missing field
            continue
        if name in fields:
            raise Refused(f"the field {name[:60]!r} is there twice")
        if name not in shape and not open_ended:
            kind = "tool" if shape is SHAPES["tool"] else "field"
            raise Refused(f"the {kind} {original_name[:60]!r} of {description} is not available here: remove it")
        fields[name] = _value(shape.get(name, _ANY), name, field_value, reading)
    return fields


def _value(kind: str, name: str, value: Any, reading: _Reading) -> Any:
    if kind == _ANY:
        return value
    if kind == _PLAIN:
        if isinstance(value, dict | list):
            raise Refused(f"{name!r} must be a text or a number")
        return value
    if kind == _LIST:
        values = value if isinstance(value, list) else [value]
        return [_value(_PLAIN, name, item, reading) for item in values]
    if not kind.endswith("*"):
        return _object(kind, value, reading)
    return [_object(kind[:-1], item, reading) for item in (value if isinstance(value, list) else [value])]


def _count(data: dict[str, Any], reading: _Reading) -> None:
    kind, content = data.get("mimeType"), data.get("data")
    picture = isinstance(kind, str) and kind.lower() in PICTURES
    readable = picture or (isinstance(kind, str) and kind.lower() in DOCUMENTS)
    if not readable and not reading.hosted_tools:
        raise Refused(f"data of the type {str(kind)[:60]!r} may not be sent")
    if not isinstance(content, str) or not BASE64.match(content):
        raise Refused("content must be sent as data in base64")
    reading.media.images += picture
    reading.media.documents += not picture
    reading.media.bytes += len(content)


def _check_values(config: dict[str, Any]) -> None:
    """Check the values on which the price of a request depends."""
    for name in ("candidateCount", "maxOutputTokens"):
        value = config.get(name)
        if value is not None and (not is_count(value)):
            raise Refused(f"`{name}` must be a number of at least 0, without a fraction")
    if any(modality not in ("TEXT", 1) for modality in config.get("responseModalities", ())):
        raise Refused("`responseModalities` may only be TEXT here")


def _spelled(name: str) -> str:
    """A field's name in the spelling of `SHAPES`.

    >>> _spelled("file_data"), _spelled("fileData")
    ('fileData', 'fileData')
    """
    first, *rest = name.split("_")
    return first + "".join(part[:1].upper() + part[1:] for part in rest)
