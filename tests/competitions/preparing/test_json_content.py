"""JSON is written in pieces, and is what `json.dumps` makes in one."""

from __future__ import annotations

import json
from typing import Any

import pytest

from competitions.preparing.declaration import json_content

RECORDS = [{"token": "Zoë", "at": [1.5, -2e-07, 0]}, {"token": None, "at": []}, "text", 3, float("inf")]
_NAME = '},\n            {"\\\x7fé'
MANY = [{"id": k, "name": _NAME[: k % 20], "at": k / 7 * 10.0 ** (k % 40 - 20)} for k in range(3000)]


@pytest.mark.parametrize(
    "value",
    [
        RECORDS,
        RECORDS[:1],
        MANY,
        {"rows": [*MANY, {}, *MANY[:9], {"at": {}}], "a": MANY[5:7]},
        [],
        {"rows": RECORDS, "a": {"b": RECORDS}},
        "text",
        [[1, 2], [3]],
        {1: [{"b": "x\n", "a": 1}]},
        [{"%s": "100 %", "a%%": 1.5, 'é"': -(10**30)}] * 3,
        [{"a": True, "b": 1}, {"a": 1, "b": 1}],
        [{"a": 1, "b": 2}, {"b": 1, "a": 2}],
        [{"a": 1}, {"b": 1}],
        [{"a": 1.0}, {"a": float("nan")}],
        [{1: "a"}, {1: "b"}],
        [{}, {}],
    ],
)
@pytest.mark.parametrize(
    "options",
    [
        {},
        {"indent": 2},
        {"indent": "\t", "separators": (", ", ":")},
        {"separators": (",", ":")},
        {"indent": 1, "separators": (" % ", " %s ")},
        {"ensure_ascii": False},
        {"sort_keys": True},
        {"indent": 4, "sort_keys": True},
    ],
)
def test_pieces_are_the_whole(value: Any, options: dict[str, Any]) -> None:
    content = json_content(value, **options)
    for _ in range(2):
        assert b"".join(content.pieces()).decode() == json.dumps(value, **options)
