"""Output to a terminal. What an agent's text could do to it: `tests/sandbox/attacks/test_terminal.py`."""

from __future__ import annotations

import io

import pytest

from common.terminal import CleanStream


@pytest.mark.parametrize("variable", [("NO_COLOR", "1"), ("TERM", "dumb")])
def test_a_terminal_without_colours_gets_none(variable: tuple[str, str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(*variable)
    out = io.StringIO()
    CleanStream(out).write("\x1b[1;31mred\x1b[0m\ttab\n")
    assert out.getvalue() == "red\ttab\n"
