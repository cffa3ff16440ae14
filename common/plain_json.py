"""Read JSON of other programs, and write JSON that every program can read.

Infinities and NaN, which JSON does not have, are the texts "Infinity", "-Infinity" and "NaN", as in the JSON of
Protocol Buffers and of pydantic (`ser_json_inf_nan="strings"`). Null would turn them into no value, although an
infinite score has a medal. Python's own writer leaves out the quotation marks, and `jq`, browsers and most databases
refuse that.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from common.errors import UserError, one_line
from common.texts import read_text, typed_wrong

_TEXTS = {"Infinity": math.inf, "-Infinity": -math.inf, "NaN": math.nan}


def dumps(value: Any, **options: Any) -> str:
    """Like `json.dumps`, with texts for infinities and NaN.

    >>> dumps({"score": float("-inf"), "at": [0.5, float("nan")]})
    '{"score": "-Infinity", "at": [0.5, "NaN"]}'
    """
    try:
        return json.dumps(value, allow_nan=False, **options)
    except ValueError:
        return json.dumps(plain(value), allow_nan=False, **options)


def plain(value: Any) -> Any:
    """The value with texts for infinities and NaN, at whatever depth."""
    if isinstance(value, float) and not math.isfinite(value):
        return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
    if isinstance(value, Mapping):
        return {name: plain(item) for name, item in value.items()}
    return [plain(item) for item in value] if isinstance(value, list | tuple) else value


def number(value: Any) -> Any:
    """A number as `dumps` wrote it: the three texts as floats, anything else as it is.

    Fields of pydantic models with the type `float` read the texts themselves.

    >>> number("-Infinity"), number(0.5), number("a")
    (-inf, 0.5, 'a')
    """
    return _TEXTS.get(value, value) if isinstance(value, str) else value


def parse_json(content: str | bytes) -> Any:
    """The value of a JSON text. Raises `ValueError` if it is none, also if it is nested deeper than Python reads.

    >>> parse_json("[" * 100_000)
    Traceback (most recent call last):
    ValueError: nested too deeply
    """
    try:
        return json.loads(content)
    except RecursionError:
        raise ValueError("nested too deeply") from None


def read_json(path: Path, what: str = "") -> Any:
    """The value in a JSON file that somebody wrote. `what` is how the message calls the file.

    Raises `UserError` if it cannot be read or is not JSON.
    """
    label = what or str(path)
    text = read_text(path, label)
    try:
        return parse_json(text)
    except ValueError as error:  # also of numbers with thousands of digits
        raise UserError(f"{label} is not JSON: {one_line(error)}{typed_wrong(text)}") from error
