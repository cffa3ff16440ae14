"""Write large JSON values in pieces, with the same text as ``json.dumps`` and by its C encoder.

``json`` uses the C encoder only for a whole value, and not at all if there is an indent. Here it encodes one element of
a list at a time. With an indent, a record without nested values is encoded with a separator that contains the line
break and the blanks, and other elements are encoded as a whole and moved to the right: a line break is never part of a
string, because it is escaped.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

_NESTED = (dict, list, tuple)


def pieces(value: Any, encoder: json.JSONEncoder) -> Iterator[str]:
    """Yield the text of ``encoder.encode(value)`` in pieces."""
    if encoder.indent is not None and "default" not in vars(encoder):
        yield from _indented(value, encoder)
    elif not isinstance(value, list) or not value or encoder.indent is not None:
        yield from encoder.iterencode(value)
    else:
        for index, element in enumerate(value):
            yield (encoder.item_separator if index else "[") + encoder.encode(element)
        yield "]"


def _indented(value: Any, encoder: json.JSONEncoder, level: int = 0) -> Iterator[str]:
    step: Any = encoder.indent
    pad = "\n" + (step if isinstance(step, str) else " " * step) * level
    deeper = pad + (step if isinstance(step, str) else " " * step)
    if isinstance(value, dict) and value and all(type(key) is str for key in value) and level < 2:
        items = sorted(value.items()) if encoder.sort_keys else value.items()
        for index, (key, element) in enumerate(items):
            yield (encoder.item_separator if index else "{") + deeper + encoder.encode(key) + encoder.key_separator
            yield from _indented(element, encoder, level + 1)
        yield pad + "}"
    elif isinstance(value, list) and value and level < 2:
        flat = _flat_encoder(encoder, deeper + (step if isinstance(step, str) else " " * step))
        inner = flat.item_separator[len(encoder.item_separator) :]
        for index, element in enumerate(value):
            yield (encoder.item_separator if index else "[") + deeper
            if (
                isinstance(element, dict)
                and element
                and not any(isinstance(each, _NESTED) for each in element.values())
            ):
                yield "{" + inner + flat.encode(element)[1:-1] + deeper + "}"
            else:
                yield encoder.encode(element).replace("\n", deeper)
        yield pad + "]"
    else:
        yield encoder.encode(value).replace("\n", pad)


def _flat_encoder(encoder: json.JSONEncoder, pad: str) -> json.JSONEncoder:
    return json.JSONEncoder(
        skipkeys=encoder.skipkeys,
        ensure_ascii=encoder.ensure_ascii,
        allow_nan=encoder.allow_nan,
        sort_keys=encoder.sort_keys,
        separators=(encoder.item_separator + pad, encoder.key_separator),
    )
