"""docs/commands.md has every command with every option, as the command line has them."""

from __future__ import annotations

import pytest

from flows.cli import COMMANDS
from tests.docs.reference import DOCUMENT, SHARED, index, reference, shared_reference, update

HINT = "bring docs/commands.md up to date: python -m tests.docs.reference"


@pytest.mark.parametrize("name", COMMANDS)
def test_a_command_is_documented_as_it_is(name: str) -> None:
    assert f"\n{reference(name)}\n" in DOCUMENT.read_text("utf-8"), HINT


@pytest.mark.parametrize("group", SHARED)
def test_shared_options_are_documented_as_they_are(group: str) -> None:
    assert f"\n{shared_reference(group)}\n" in DOCUMENT.read_text("utf-8"), HINT


def test_commands_are_listed_by_section() -> None:
    assert index() in DOCUMENT.read_text("utf-8"), HINT


def test_no_command_is_documented_that_is_not_there() -> None:
    text = DOCUMENT.read_text("utf-8")
    assert [line.removeprefix("## ") for line in text.splitlines() if line.startswith("## ")] == list(COMMANDS), HINT


@pytest.mark.parametrize("name", COMMANDS)
def test_a_command_has_an_example(name: str) -> None:
    section = DOCUMENT.read_text("utf-8").partition(f"\n## {name}\n")[2].partition("\n## ")[0]
    assert f"$ mlebench {name}" in section


def test_updating_keeps_what_is_written_by_hand() -> None:
    text = DOCUMENT.read_text("utf-8")
    assert update(text) == text, HINT
    changed = text.replace("| `--seeds`", "| `--runs`")
    assert changed != text
    assert update(changed) == text
