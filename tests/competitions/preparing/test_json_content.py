"""JSON is written in pieces, and is what `json.dumps` makes in one."""

from __future__ import annotations

import json
from typing import Any

import pytest

from competitions.preparing.declaration import json_content

RECORDS = [{"token": "Zoë", "at": [1.5, -2e-07, 0]}, {"token": None, "at": []}, "text", 3, float("inf")]


@pytest.mark.parametrize(
    "value",
    [
        RECORDS,
        RECORDS[:1],
        [],
        {"rows": RECORDS, "a": {"b": RECORDS}},
        "text",
        [[1, 2], [3]],
        {1: [{"b": "x\n", "a": 1}]},
    ],
)
@pytest.mark.parametrize(
    "options",
    [
        {},
        {"indent": 2},
        {"separators": (",", ":")},
        {"ensure_ascii": False},
        {"sort_keys": True},
        {"indent": 4, "sort_keys": True},
    ],
)
def test_pieces_are_the_whole(value: Any, options: dict[str, Any]) -> None:
    content = json_content(value, **options)
    for _ in range(2):
        assert b"".join(content.pieces()).decode() == json.dumps(value, **options)
