"""The command line: `mlebench COMMAND`. Each command has a file in `flows/commands`, imported when it is called."""

from __future__ import annotations

import contextlib
import copy
import functools
import importlib
import io
import logging
import os
import sys
import traceback
from collections.abc import Iterator, Sequence
from typing import Any, NoReturn

import click
from click.shell_completion import CompletionItem

from common.causes import cause_of, explain
from common.errors import UsageError, UserError, close_matches, one_line
from common.starting import collect_seldom
from common.terminal import clean_output

# section -> name -> (module, help): the group's help needs no import of any command
SECTIONS = {
    "Benchmark": {
        "list": ("catalog", "List competitions and their splits."),
        "issues": ("issues", "List known issues, and whether v2 fixes them."),
        "prepare": ("prepare", "Download, split and verify competitions."),
        "adopt": ("adopt", "Adopt data that the published benchmark has prepared."),
        "run": ("run", "Run the full benchmark: prepare, run an agent, grade, report."),
        "grade": ("grade", "Grade a JSONL file of submissions."),
        "grade-sample": ("grade_sample", "Grade one CSV."),
        "leaderboard": ("leaderboard", "Show medal thresholds and percentiles, or fetch those of today."),
    },
    "Results": {
        "ls": ("ls", "List the run groups in the store, or the runs of one."),
        "show": ("show", "Show one run: how it ended, its grade, its files."),
        "logs": ("logs", "Print the log of a run's agent; -f follows a run in progress."),
        "regrade": ("regrade", "Grade a run group again, without running agents."),
        "report": ("report", "Write the report of one or several run groups."),
        "open": ("open", "Open the report of run groups in the browser."),
        "compare": ("compare", "Compare two run groups."),
        "plan": ("plan", "Plan a comparison: seeds and competitions, hours and dollars."),
        "export": ("export", "Write results in the formats of other tools."),
        "import-report": ("import_report", "Import published grading reports into the tables."),
        "rm": ("rm", "Remove run groups."),
    },
    "Examine": {
        "examine": ("examine", "Check a group for plagiarism, violations, contamination, noise."),
        "kernels": ("kernels", "Pull public notebooks, with which code is compared."),
        "verify": ("verify", "Verify the evidence of a run group."),
    },
    "Your own": {
        "agents": ("agents", "List the agents and their variants."),
        "agent new": ("agent_new", "Create an agent of your own from a working template."),
        "agent try": ("agent_try", "Try an agent on a small competition, with a short time limit."),
        "build": ("build", "Build the image of an agent, or the base image."),
        "new": ("new", "Create a competition of your own from a working template."),
        "check": ("check", "Self-test competitions, also with hostile submissions."),
    },
    "Training": {
        "serve": ("serve", "Serve competitions as environments to train agents in (OpenEnv)."),
    },
    "Fleet": {
        "worker": ("worker", "Run agents on this host, taking attempts from a work pool."),
        "watch": ("watch", "Watch a run group whose attempts are in a work pool."),
        "cancel": ("cancel", "End the runs of a group that are in progress."),
        "notify": ("notify", "Be told of finished groups, failed nightlies, silent hosts."),
    },
    "Upkeep": {
        "doctor": ("doctor", "Check that the installation is ready for a long run."),
        "config": ("config", "Show the settings, and where each comes from."),
        "du": ("du", "Show the disk usage of the store and the cache."),
        "gc": ("gc", "Remove data that is no longer needed."),
        "completion": ("completion", "Print the script that completes names in a shell."),
    },
}
COMMANDS = {name: facts for commands in SECTIONS.values() for name, facts in commands.items()}
PUBLISHED_NAMES = {
    "dev download-leaderboard": ["leaderboard", "--refresh", "--missing"],
    "make-submission": ["export", "--format", "submissions"],
}
"""Names that the published tool has, with the command and the options that they stand for. The help leaves them out."""
OLD_NAMES = {name: ["examine", "--only", name] for name in ("plagiarism", "violations", "contamination", "split-noise")}
"""Likewise names of earlier versions, which go in 2.0. Using one prints what to write instead."""
_NAMES = {**PUBLISHED_NAMES, **OLD_NAMES}


class _Commands(click.Group):
    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        name = _NAMES.get(cmd_name, [cmd_name])[0]
        if name not in COMMANDS:
            return None
        command: click.Command = importlib.import_module(f"flows.commands.{COMMANDS[name][0]}").command
        return _with_settings(command)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """The command that the first words name, which may be two, as in `agent new`."""
        for count in (2, 1):
            name, rest = " ".join(args[:count]), args[count:]
            if name in OLD_NAMES and not ctx.resilient_parsing:
                click.echo(f"mlebench: `{name}` is now `{' '.join(OLD_NAMES[name])}`", err=True)
            if name in COMMANDS or name in _NAMES:
                return name, self.get_command(ctx, name), [*_NAMES.get(name, [])[1:], *rest]
        if ctx.resilient_parsing:
            return None, None, args  # a shell completes an unfinished command
        if not args[0].startswith("-"):
            if subcommands := [name for name in COMMANDS if name.startswith(f"{args[0]} ")]:
                _show_subcommands(ctx, args, subcommands)
            ctx.fail(f"No such command {args[0]!r}.{close_matches(args[0], COMMANDS)}")
        return super().resolve_command(ctx, args)

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        """Commands word by word: `agent`, then `new` and `try`."""
        typed = " ".join([*ctx._protected_args, *ctx.args])
        if incomplete.startswith("-"):
            return super().shell_complete(ctx, incomplete)
        remaining = [name.removeprefix(f"{typed} ") for name in COMMANDS if not typed or name.startswith(f"{typed} ")]
        words = dict.fromkeys(name.split(" ")[0] for name in remaining)
        return [
            CompletionItem(word, help=COMMANDS.get(f"{typed} {word}".strip(), ("", ""))[1])
            for word in words
            if word.startswith(incomplete)
        ]

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        width = max(map(len, COMMANDS))
        for section, commands in SECTIONS.items():
            with formatter.section(section):
                formatter.write_dl([(name.ljust(width), text) for name, (_, text) in commands.items()])


def _show_subcommands(ctx: click.Context, args: Sequence[str], names: Sequence[str]) -> NoReturn:
    """End with the help of a word that two-word commands share, such as `agent`, or with the error about the second."""
    word, *rest = args
    if rest and rest[0] not in ctx.help_option_names:
        wrong = " ".join([word, rest[0]])
        ctx.fail(f"No such command {wrong!r}. There are {', '.join(names)}.")
    formatter = ctx.make_formatter()
    formatter.write_usage(f"{ctx.command_path} {word}", "COMMAND [OPTIONS] ...")
    with formatter.section("Commands"):
        formatter.write_dl([(name, COMMANDS[name][1]) for name in names])
    formatter.write_paragraph()
    formatter.write_text(f"`{ctx.command_path} {names[0]} --help` shows the options of a command.")
    click.echo(formatter.getvalue().rstrip("\n"), err=not rest)
    ctx.exit(0 if rest else 2)


def _with_settings(command: click.Command) -> click.Command:
    """A copy of the command that applies the settings and quiets Prefect first; `--help` works without them."""
    wrapped = copy.copy(command)
    callback = command.callback
    assert callback is not None

    @functools.wraps(callback)
    def call(*args: Any, **options: Any) -> Any:
        from tasks.wiring.process import apply_settings

        apply_settings()
        from flows import which_server
        from flows.commands.options import quiet_prefect

        quiet_prefect()
        which_server.choose()
        return callback(*args, **options)

    wrapped.callback = call
    return wrapped


@click.command(cls=_Commands, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="mlebench-pipeline")
def cli() -> None:
    """MLE-bench as a data pipeline: prepare competitions, run agents in a sandbox, grade, report."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command; returns the exit code. A `UserError` is shown as one line, never as a traceback."""
    if arguments is None:  # a process of its own
        _require_utf8()
        collect_seldom()
    _accept_any_text()
    with clean_output():
        return _main(arguments)


def _main(arguments: Sequence[str] | None) -> int:
    try:
        with _shown_warnings():
            code = cli.main(
                args=list(arguments) if arguments is not None else None, prog_name="mlebench", standalone_mode=False
            )
        return code if isinstance(code, int) else 0
    except click.exceptions.Abort:
        return _interrupted()
    except KeyboardInterrupt:
        return _interrupted()
    except click.exceptions.NoArgsIsHelpError as error:
        error.show()
        return error.exit_code
    except click.UsageError as error:
        command = error.ctx.command_path if error.ctx else "mlebench"
        click.echo(f"mlebench: {error.format_message().rstrip('.')} (see `{command} --help`)", err=True)
        return error.exit_code
    except click.ClickException as error:
        click.echo(f"mlebench: {error.format_message()}", err=True)
        return error.exit_code
    except UserError as error:
        click.echo(f"mlebench: {error}", err=True)
        return 2 if isinstance(error, UsageError) else 1
    except Exception as error:
        if server := _silent_server(error):
            remedy = "start it (make up), or unset PREFECT_API_URL"
            if not os.environ.get("PREFECT_API_URL"):
                remedy = "it was started by this command; run it again"
            click.echo(f"mlebench: the Prefect server {server} does not answer; {remedy}", err=True)
            return 1
        if reason := _invalid_prefect_settings(error):
            click.echo(f"mlebench: {reason}", err=True)
            return 2
        from tasks.wiring.prefect_server import asks_for_login

        if asks_for_login(error):
            click.echo(
                f"mlebench: the Prefect server {os.environ.get('PREFECT_API_URL')} asks for a login; set "
                "PREFECT_API_AUTH_STRING to its USER:PASSWORD (that of make up: `. .mlebench/env`)",
                err=True,
            )
            return 1
        # A traceback helps only with bugs. A missing file may be a bug, too.
        if cause_of(error).fault == "program" or isinstance(error, FileNotFoundError):
            raise
        click.echo(f"mlebench: {explain(error)}", err=True)
        return 1


def _silent_server(error: Exception) -> str | None:
    """The address of the Prefect server if the error says that it does not answer."""
    if isinstance(error, RuntimeError) and str(error).startswith("Failed to reach API at"):
        return str(error).rpartition(" ")[2]
    # Our own connections by httpx, to language models, raise other errors.
    if any(f"{each.__module__}.{each.__name__}" == "httpx.TransportError" for each in type(error).__mro__):
        return os.environ.get("PREFECT_API_URL")
    return None


def _invalid_prefect_settings(error: Exception) -> str:
    """What is wrong with Prefect's own settings, if the error says that: they are read when it is imported."""
    files = (frame.f_code.co_filename for frame, _ in traceback.walk_tb(error.__traceback__))
    if not isinstance(error, ValueError) or not any("/prefect/settings/" in file for file in files):
        return ""
    problem = next(iter(error.errors()), None) if hasattr(error, "errors") else None
    text = f"{'.'.join(map(str, problem['loc']))}: {problem['msg']}" if problem else one_line(error)
    sources = "PREFECT_... variables, and .env, prefect.toml and pyproject.toml here"
    return f"Prefect's settings are not valid ({text}); see {sources}"


def _require_utf8() -> None:
    """Start again in UTF-8 mode where the locale has another encoding: stores and archives have names of all kinds."""
    if sys.getfilesystemencoding().lower() == "utf-8" or os.environ.get("PYTHONUTF8") == "1":
        return
    os.environ["PYTHONUTF8"] = "1"  # also for the processes that are started
    os.execv(sys.executable, [sys.executable, *sys.orig_argv[1:]])  # noqa: S606  # the same program


def _accept_any_text() -> None:
    """Escape characters that the output cannot encode: file names and messages of graders may contain any."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):  # it may be closed, or replaced by something else
            stream.reconfigure(errors="backslashreplace")


class _Lines(logging.Handler):
    """Shows each warning as one line on standard error, and bugs with their traceback."""

    def emit(self, record: logging.LogRecord) -> None:
        click.echo(f"mlebench: {' '.join(record.getMessage().split())}", err=True)
        if record.exc_info:
            click.echo(logging.Formatter().formatException(record.exc_info), err=True)


@contextlib.contextmanager
def _shown_warnings() -> Iterator[None]:
    """Show the project's own warnings. They do not reach the root logger, which Prefect configures."""
    logger, handler = logging.getLogger("mlebench"), _Lines(logging.WARNING)
    logger.addHandler(handler)
    logger.propagate, before = False, logger.propagate
    try:
        yield
    finally:
        logger.removeHandler(handler)
        logger.propagate = before


def _interrupted() -> int:
    from flows.commands.stopping import INTERRUPTED, STOPPED

    click.echo(f"mlebench: {STOPPED}", err=True)
    return INTERRUPTED


if __name__ == "__main__":
    sys.exit(main())
