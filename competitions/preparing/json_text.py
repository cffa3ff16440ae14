"""Write large JSON values in pieces, with the same text as ``json.dumps`` and by its C encoder.

``json`` uses the C encoder only for a whole value, and not at all with an indent. Here the C encoder encodes some
elements of a list at a time. Records with the same fields fill one template: all values of a field are converted with
one call. Other records without nested values are, with an indent, encoded with a separator that contains the line
break and the blanks. Other elements are encoded one by one and indented, which is safe because a line break within a
string is escaped.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from itertools import chain
from json.encoder import encode_basestring, encode_basestring_ascii
from math import isfinite
from typing import Any

_NESTED = (dict, list, tuple)
_PIECE_CHARACTERS = 1 << 16
"""Approximate number of characters that are encoded at a time: they fit into the cache of a processor."""
_MAX_ELEMENTS = 1 << 10  # elements that are encoded at a time: the first elements of a list may be small


def pieces(value: Any, encoder: json.JSONEncoder) -> Iterator[str]:
    """Yield the text of ``encoder.encode(value)`` in pieces."""
    if encoder.indent is not None and "default" not in vars(encoder):
        yield from _indented(value, encoder)
    elif not isinstance(value, list) or not value or encoder.indent is not None:
        yield from encoder.iterencode(value)
    else:
        separator = encoder.item_separator

        def text_of(block: list[Any]) -> str:
            texts = _alike(block, encoder, "{", separator, "}")
            return encoder.encode(block)[1:-1] if texts is None else separator.join(texts)

        yield "["
        yield from _in_blocks(value, text_of, separator)
        yield "]"


def _in_blocks(elements: list[Any], text_of: Callable[[list[Any]], str], separator: str) -> Iterator[str]:
    """Yield the text of several elements at a time: as many as make a piece, judged by the size of the last ones."""
    start, count = 0, 1
    while start < len(elements):
        block = elements[start : start + count]
        text = text_of(block)
        yield separator + text if start else text
        start += len(block)
        count = min(max(1, len(block) * _PIECE_CHARACTERS // max(1, len(text))), 2 * count, _MAX_ELEMENTS)


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
        line_break = flat.item_separator[len(encoder.item_separator) :]
        between = encoder.item_separator + deeper

        def text_of(block: list[Any]) -> str:
            texts = _alike(block, encoder, "{" + line_break, flat.item_separator, deeper + "}")
            if texts is not None:
                return between.join(texts)
            if not _all_flat(block):
                return between.join([encoder.encode(element).replace("\n", deeper) for element in block])
            records = flat.encode(block)[2:-2]
            return (
                "{"
                + line_break
                + records.replace(f"}}{flat.item_separator}{{", f"{deeper}}}{between}{{{line_break}")
                + deeper
                + "}"
            )

        yield "[" + deeper
        yield from _in_blocks(value, text_of, between)
        yield pad + "]"
    else:
        yield encoder.encode(value).replace("\n", pad)


def _alike(
    elements: list[Any], encoder: json.JSONEncoder, opening: str, between: str, closing: str
) -> Iterable[str] | None:
    """The texts of records with the same keys in the same order, and with values of one simple type for each key.

    The result is None for other elements. A text begins with `opening`, has `between` after each field but the last,
    and ends with `closing`.
    """
    layouts = set(map(tuple, elements)) if set(map(type, elements)) == {dict} else ()
    keys = next(iter(layouts), ())
    if len(layouts) != 1 or set(map(type, keys)) != {str}:
        return None
    columns: list[Iterable[Any]] = []
    for values in zip(*map(dict.values, elements), strict=True):
        kinds = set(map(type, values))
        if kinds == {str}:
            columns.append(map(encode_basestring_ascii if encoder.ensure_ascii else encode_basestring, values))
        elif kinds == {int} or (kinds == {float} and all(map(isfinite, values))):
            columns.append(values)  # str() writes these as json does
        else:
            return None
    order = sorted(range(len(keys)), key=keys.__getitem__) if encoder.sort_keys else range(len(keys))
    fixed = [encoder.encode(keys[index]) + encoder.key_separator for index in order]
    template = "%s".join(
        text.replace("%", "%%") for text in (opening + fixed[0], *(between + field for field in fixed[1:]), closing)
    )
    return map(template.__mod__, zip(*(columns[index] for index in order), strict=True))


def _all_flat(elements: list[Any]) -> bool:
    """Whether all are records without nested values, and none is empty."""
    if not all(issubclass(kind, dict) for kind in set(map(type, elements))) or not all(elements):
        return False
    kinds = set(map(type, chain.from_iterable(element.values() for element in elements)))
    return not any(issubclass(kind, _NESTED) for kind in kinds)


def _flat_encoder(encoder: json.JSONEncoder, pad: str) -> json.JSONEncoder:
    return json.JSONEncoder(
        skipkeys=encoder.skipkeys,
        ensure_ascii=encoder.ensure_ascii,
        allow_nan=encoder.allow_nan,
        sort_keys=encoder.sort_keys,
        separators=(encoder.item_separator + pad, encoder.key_separator),
    )
