"""The list of outcomes: no name twice in a line, and a long reason of several failures once."""

from __future__ import annotations

import pytest

from flows.commands.session import tell
from flows.watching.outcome import Outcome

REASON = "provide Kaggle credentials in one of three ways: a token, a file or two variables"


def test_names_and_reasons_are_told_once(capfd: pytest.CaptureFixture[str]) -> None:
    outcomes = [
        Outcome("digits", "done"),
        *(Outcome(name, "failed", f"{name}: {REASON}") for name in ("a", "b", "c", "d")),
        Outcome("e", "failed", "e: its rules are not accepted yet; accept them on its page"),
        Outcome("f seed 0", "failed", "f: out of room"),
        Outcome("g", "failed", "no disk"),
        Outcome("h", "failed", "no disk"),
    ]
    assert tell(outcomes) == 1
    assert capfd.readouterr().out.splitlines() == [
        "  done    digits",
        "  failed  a",
        "  failed  b",
        "  failed  c",
        "  failed  d",
        "  failed  e: its rules are not accepted yet; accept them on its page",
        "  failed  f seed 0: out of room",
        "  failed  g: no disk",
        "  failed  h: no disk",
        f"  a, b, c and 1 more: {REASON}",
        "1 done, 8 failed",
    ]
