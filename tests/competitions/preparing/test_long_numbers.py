"""Numbers that orjson would read as floats are found wherever they are in a document."""

from __future__ import annotations

import random
import re

import pytest

from competitions.preparing import download


@pytest.mark.parametrize("block", [1, 20, 50, 1 << 20])
def test_nineteen_digits_in_a_row_are_a_long_number(block: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(download, "_BLOCK", block)
    draw = random.Random(block)
    found = set()
    for _ in range(500):
        text = "".join(draw.choices("0123456789", k=draw.randint(0, 130)))
        for _ in range(draw.randint(0, 9)):
            place = draw.randint(0, len(text))
            text = f"{text[:place]}{draw.choice('.,e-:é')}{text[place + 1 :]}"
        expected = re.search("[0-9]{19}", text) is not None
        assert download.has_long_number(text.encode()) == expected
        found.add(expected)
    assert found == {True, False}
