"""Text of an agent that would take over the operator's terminal."""

from __future__ import annotations

import io
import sys

import click
import pytest
from rich.console import Console

from common.progress import Event
from common.terminal import CleanStream, clean, clean_output
from flows.watching import board as board_module
from flows.watching.board import Board

EVIL = "\x1b]0;title\x07\x1b[2J\x1b[1A\x1b[8mhidden\x9b31m\u202eabc\r\x08\x1bP q\x1b\\\x1bc"


def has_effect(text: str) -> bool:
    return (
        any(character in text for character in "\x07\x08\r\x9b\u202e")
        or any(not part.partition("m")[0].replace(";", "").isdigit() for part in text.split("\x1b[")[1:])
        or "\x1b]" in text
        or "\x1bP" in text
        or "\x1bc" in text
    )


def test_escapes_in_a_message_on_the_way_to_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    out = io.StringIO()
    monkeypatch.setattr(sys, "stdout", out)
    monkeypatch.setattr(sys, "stderr", out)
    with clean_output():
        click.echo(EVIL)
        click.echo(EVIL, err=True)
        print(EVIL, file=sys.stderr)
        Console(force_terminal=True).print(EVIL, markup=False)
        sys.stdout.writelines([EVIL])
    assert out.getvalue().count("hidden") == 5
    assert not has_effect(out.getvalue())


def test_escapes_in_a_row_of_the_live_board() -> None:
    out = io.StringIO()
    state = Board("title")
    state.hear(Event(EVIL, "running", EVIL))
    Console(file=out, width=400).print(state)
    assert "hidden" in out.getvalue()
    assert not has_effect(out.getvalue())
    assert board_module.clean is clean


def test_bytes_do_not_go_around_the_cleaning() -> None:
    stream = CleanStream(io.StringIO())
    with pytest.raises(AttributeError):
        _ = stream.buffer
    stream.write(b"\x1b[2J")
    assert stream.raw.getvalue() == "\\x1b[2J"  # type: ignore[attr-defined]


def test_escapes_in_what_a_command_prints(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    from common.errors import UserError
    from flows import cli

    def fail(*_: object, **__: object) -> None:
        raise UserError(f"agent said {EVIL}")

    monkeypatch.setattr(cli.cli, "main", fail)
    assert cli.main(["ls"]) == 1
    error = capsys.readouterr().err
    assert "agent said" in error
    assert not has_effect(error)


def test_colours_of_our_own_tables_stay(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("TERM", "xterm")
    out = io.StringIO()
    CleanStream(out).write("\x1b[1;31mred\x1b[0m\ttab\n")
    assert out.getvalue() == "\x1b[1;31mred\x1b[0m\ttab\n"
    assert clean("\x1b[31m") == "\\x1b[31m"
