"""Write JSON that every program can read: infinities and NaN, which JSON does not have, are texts.

They are "Infinity", "-Infinity" and "NaN", as in the published reports here, in pydantic (`ser_json_inf_nan="strings"`)
and in the JSON of Protocol Buffers. Null would turn them into no value, although an infinite score has a medal.
Python's own writer leaves out the quotation marks, and `jq`, browsers and most databases refuse what it wrote.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from typing import Any

_TEXTS = {"Infinity": math.inf, "-Infinity": -math.inf, "NaN": math.nan}


def dumps(value: Any, **options: Any) -> str:
    """Like `json.dumps`, with texts for what is no number in JSON.

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
        return {name: plain(each) for name, each in value.items()}
    return [plain(each) for each in value] if isinstance(value, list | tuple) else value


def number(value: Any) -> Any:
    """A number as `dumps` wrote it: the three texts as floats, anything else as it is.

    Fields of pydantic models with the type `float` read the texts themselves.

    >>> number("-Infinity"), number(0.5), number("a")
    (-inf, 0.5, 'a')
    """
    return _TEXTS.get(value, value) if isinstance(value, str) else value
