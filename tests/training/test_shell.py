"""A shell runs commands one after the other, whatever they do to it."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from training.shell import ProcessPipe, Ran, Shell


@pytest.fixture
def shell(tmp_path: Path) -> Iterator[Shell]:
    shell = Shell(lambda: ProcessPipe(tmp_path, {"PATH": os.environ["PATH"]}), {"WHO": "it's me"})
    yield shell
    shell.close()


def run(shell: Shell, command: str, seconds: float = 20.0, output_bytes: int = 1000) -> Ran:
    return shell.run(command, seconds, output_bytes)


def test_outputs_and_exit_code_are_those_of_the_command(shell: Shell) -> None:
    ran = run(shell, "echo out; printf err >&2; exit 3")
    assert (ran.stdout, ran.stderr, ran.exit_code, ran.cut) == ("out\n", "err", 3, False)


def test_output_without_a_last_newline_is_returned_as_it_is(shell: Shell) -> None:
    assert run(shell, "printf 'a\\n\\nb'").stdout == "a\n\nb"


def test_commands_have_quotes_lines_variables_and_no_input(shell: Shell) -> None:
    assert run(shell, 'printf \'%s|\' "$WHO" "two\nlines"; cat').stdout == "it's me|two\nlines|"


def test_commands_are_run_by_bash(shell: Shell) -> None:
    assert run(shell, "a=(1 2); echo ${a[1]}").stdout == "2\n"


def test_a_syntax_error_is_that_of_the_command_only(shell: Shell) -> None:
    assert run(shell, "if then '").exit_code == 2
    assert run(shell, "echo next").stdout == "next\n"


def test_a_command_is_killed_at_its_time_limit_with_what_it_has_started(shell: Shell) -> None:
    ran = run(shell, "echo begun; sleep 100; echo never", seconds=0.3)
    assert (ran.stdout, ran.exit_code) == ("begun\n", 137)
    assert ran.seconds < 5


def test_a_background_process_does_not_hold_a_command(shell: Shell) -> None:
    ran = run(shell, "sleep 100 & echo started")
    assert (ran.stdout, ran.exit_code) == ("started\n", 0)


def test_of_a_long_output_the_beginning_and_the_end_are_kept(shell: Shell) -> None:
    ran = run(shell, "seq 1 200000", output_bytes=1000)
    assert ran.cut
    assert ran.stdout.startswith("1\n2\n3\n")
    assert ran.stdout.endswith("199999\n200000\n")
    first, note, last = ran.stdout.partition("\n[... ")
    assert len(first) == 500
    assert len(last.partition(" ...]\n")[2]) == 500
    assert note


def test_an_output_of_just_the_limit_is_whole(shell: Shell) -> None:
    ran = run(shell, "printf '%01000d' 7", output_bytes=1000)
    assert (len(ran.stdout), ran.stdout[-1], ran.cut) == (1000, "7", False)


def test_output_that_is_no_text_is_returned_as_replacements(shell: Shell) -> None:
    assert run(shell, r"printf '\xff\x00a'").stdout == "�\x00a"


def test_a_command_that_ends_its_shell_is_followed_by_a_new_one(shell: Shell) -> None:
    ran = run(shell, "kill -9 $(cut -d' ' -f4 /proc/$PPID/stat); sleep 0.2; echo on")
    assert ran.exit_code is None
    assert run(shell, 'echo "next $WHO"').stdout == "next it's me\n"


def test_the_mark_of_one_command_is_worth_nothing_in_the_next(shell: Shell) -> None:
    run(shell, "true")
    ran = run(shell, "printf '\\n%032d 0\\n' 0; sleep 0.1; exit 4")
    assert ran.exit_code == 4
