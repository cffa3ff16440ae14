"""Rules of the command line. Each holds for all commands, so that a new one cannot break it.

Exit codes are tested in `test_exit_codes.py`, `--json` in `test_json.py`.
"""

from __future__ import annotations

import io
import re

import click
import pytest

from common.settings import get_settings
from flows.cli import COMMANDS, OLD_NAMES, PUBLISHED_NAMES, SECTIONS, cli, main
from flows.commands.options import Selection
from flows.commands.tables import Cell, show_table
from tests.flows.graded import GROUP, dataset, graded, group
from tests.stores import Store

__all__ = ["dataset", "graded", "group"]

OF_COMPETITIONS = {
    *("list", "issues", "prepare", "adopt", "run", "leaderboard", "export", "kernels", "check", "doctor", "serve"),
}
"""Commands that take competitions."""
OF_ONE = {
    "grade-sample": "takes one, as the published tool does",
    "agent try": "tries the agent on one",
    "new": "makes one",
    "compare": "`--split` says which competitions are compared, of those that were run",
    "plan": "`--split` says how many competitions are planned for",
    "report": "`--split` says which competitions count, of those that were run",
}
REMOVING = ("rm", "gc")
"""Commands that remove something. `doctor` removes with `--fix`, and without it shows what that would remove."""


def command_of(name: str) -> click.Command:
    command = cli.get_command(click.Context(cli), name)
    assert command is not None
    return command


def options_of(name: str) -> dict[str, click.Parameter]:
    return {option: parameter for parameter in command_of(name).params for option in parameter.opts}


def said_by(capfd: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    capfd.readouterr()
    code = main(arguments)
    return code, *capfd.readouterr()


def test_the_help_has_a_section_for_each_kind_of_command(capfd: pytest.CaptureFixture[str]) -> None:
    out = said_by(capfd, "--help")[1]
    assert re.findall(r"^(\S.*):$", out, re.MULTILINE) == ["Options", *SECTIONS]
    assert re.findall(r"^  ([a-z][a-z-]*(?: (?:new|try))?)  ", out, re.MULTILINE) == list(COMMANDS)
    assert sum(len(commands) for commands in SECTIONS.values()) == len(COMMANDS)


@pytest.mark.parametrize("command", ["", *COMMANDS])
def test_help_fits_80_columns(command: str, capfd: pytest.CaptureFixture[str]) -> None:
    out = said_by(capfd, *command.split(), "--help")[1]
    assert max(map(len, out.splitlines())) <= 80


@pytest.mark.parametrize("command", COMMANDS)
def test_competitions_are_selected_alike(command: str) -> None:
    selecting = {"--split", "--lite", "--all", "--list", "--exclude", "-c"} & options_of(command).keys()
    if command in OF_COMPETITIONS:
        assert len(selecting) == 6
    else:
        assert not selecting or command in OF_ONE


def test_competitions_as_arguments_and_options_are_one_selection() -> None:
    chosen = Selection(competitions=("digits",), split="demo").with_ids(["digits", "leaf-classification"])
    assert chosen.ids() == ["breast-cancer", "diabetes", "digits", "leaf-classification"]


@pytest.mark.parametrize("command", REMOVING)
def test_what_removes_can_show_it_first(command: str) -> None:
    assert "--dry-run" in options_of(command)


@pytest.mark.parametrize("command", COMMANDS)
def test_help_and_messages_have_no_types_of_click(command: str) -> None:
    types = {type(parameter.type) for parameter in command_of(command).params}
    assert types.isdisjoint({click.types.IntRange, click.types.FloatRange, click.types.IntParamType})


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["grade", "--workers", "0"], "'0' is not a whole number of at least 1"),
        (["kernels", "--top", "x"], "'x' is not a whole number from 1 to 500"),
        (["run", "--seeds", "1.5"], "'1.5' is not a whole number of at least 1"),
    ],
)
def test_a_value_out_of_range_is_told_in_words(
    arguments: list[str], says: str, capfd: pytest.CaptureFixture[str]
) -> None:
    code, _, err = said_by(capfd, *arguments)
    assert (code, says in err) == (2, True), err


@pytest.mark.parametrize("name", OLD_NAMES)
def test_an_old_name_works_and_says_the_new_one(
    name: str, group: Store, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("MLEBENCH_STORE", group.root)
    get_settings.cache_clear()
    code, _, err = said_by(capfd, name, "nobody", *(["--model", "m"] if name == "contamination" else []))
    assert code == 1
    assert f"`{name}` is now `examine --only {name}`" in err
    assert "nobody" in err


@pytest.mark.parametrize("name", PUBLISHED_NAMES)
def test_a_published_name_works_and_is_not_listed(name: str, capfd: pytest.CaptureFixture[str]) -> None:
    assert name not in COMMANDS
    code, out, _ = said_by(capfd, *name.split(), "--help")
    assert (code, f"mlebench {name}" in out) == (0, True)


@pytest.mark.parametrize(
    ("typed", "hint"),
    [("raport", "Did you mean report"), ("agent knew", "agent new, agent try"), ("frobnicate", ""), ("dev", "")],
)
def test_only_near_names_are_suggested(typed: str, hint: str, capfd: pytest.CaptureFixture[str]) -> None:
    code, _, err = said_by(capfd, *typed.split())
    assert code == 2
    assert hint in err
    assert ("mean" in err) == ("mean" in hint)


@pytest.mark.parametrize(("arguments", "code"), [(["agent"], 2), (["agent", "--help"], 0), (["agent", "-h"], 0)])
def test_the_first_word_of_two_shows_their_help(
    arguments: list[str], code: int, capfd: pytest.CaptureFixture[str]
) -> None:
    found, out, err = said_by(capfd, *arguments)
    assert found == code
    assert [line.split()[:2] for line in (err if code else out).splitlines()[3:5]] == [
        ["agent", "new"],
        ["agent", "try"],
    ]
    assert not (out if code else err)


class TestTables:
    HEAD = ("NAME", "COUNT", "WHAT")
    ROWS: tuple[tuple[Cell, ...], ...] = (("a", "5", "x" * 300), ("long-name", "12,000", ("y", "red")))

    def test_a_row_is_one_line_where_no_terminal_is(self, capfd: pytest.CaptureFixture[str]) -> None:
        show_table(self.HEAD, self.ROWS, "Title", right=("COUNT",))
        assert capfd.readouterr().out.splitlines() == [
            "Title",
            "NAME        COUNT  WHAT",
            f"a               5  {'x' * 300}",
            "long-name  12,000  y",
        ]

    def test_a_terminal_of_80_columns_shows_all(self, monkeypatch: pytest.MonkeyPatch) -> None:
        terminal = io.StringIO()
        monkeypatch.setattr(terminal, "isatty", lambda: True)
        monkeypatch.setattr("sys.stdout", terminal)
        monkeypatch.setenv("COLUMNS", "80")
        monkeypatch.setenv("TERM", "xterm")
        show_table(self.HEAD, self.ROWS, right=("COUNT",))
        plain = re.sub(r"\x1b\[[0-9;]*m", "", terminal.getvalue())
        assert max(map(len, plain.splitlines())) <= 80
        assert plain.count("x") == 300
        assert "12,000" in plain
        assert terminal.getvalue() != plain, "with colours"

    @pytest.mark.parametrize(
        "arguments", [["list"], ["agents"], ["ls"], ["ls", GROUP], ["du"], ["config"], ["doctor", "-c", "diabetes"]]
    )
    def test_every_list_has_the_same_style(
        self,
        arguments: list[str],
        group: Store,
        monkeypatch: pytest.MonkeyPatch,
        capfd: pytest.CaptureFixture[str],
    ) -> None:
        monkeypatch.setenv("MLEBENCH_STORE", group.root)
        get_settings.cache_clear()
        out = said_by(capfd, *arguments)[1]
        heads = [line for line in out.splitlines()[:2] if line == line.upper() and "  " in line]
        assert len(heads) == 1, out
        assert not re.search("[│┃━─╭╰]", out)
