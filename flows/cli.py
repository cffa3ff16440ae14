"""The command line: `mlebench COMMAND`. One file a command in `flows/commands`; each is imported when it is called."""

from __future__ import annotations

import copy
import functools
import importlib
import sys
from collections.abc import Sequence
from typing import Any

import click

from common.errors import UserError

# name -> (module, help): the group's help needs no import of any command
COMMANDS = {
    "list": ("catalog", "Competitions and their splits."),
    "prepare": ("prepare", "Download, split and verify competitions."),
    "run": ("run", "The full benchmark: prepare, run an agent, grade, report."),
    "agents": ("agents", "The agents that can be run, and their variants."),
    "build": ("build", "Build the image of an agent, or the base image."),
    "grade": ("grade", "Grade a JSONL file of submissions."),
    "grade-sample": ("grade_sample", "Grade one CSV."),
    "leaderboard": ("leaderboard", "Medal thresholds and percentiles; Kaggle's leaderboard of today."),
    "kernels": ("kernels", "Pull a competition's most voted public notebooks."),
    "new": ("new", "Start a competition of your own from a small one that runs."),
    "check": ("check", "Self-test competitions, with hostile submissions among others."),
    "make-submission": ("make_submission", "The JSONL of a finished run group."),
    "regrade": ("regrade", "Grade a run group again without running agents."),
    "doctor": ("doctor", "Is everything there that hours of work will need?"),
    "du": ("du", "What takes space in the store and the cache."),
    "gc": ("gc", "Remove what is not needed any more."),
    "report": ("report", "The report of one or several run groups."),
    "ls": ("ls", "Run groups in the store, or the runs of one."),
    "show": ("show", "One run: how it ended, its grade, its files."),
    "logs": ("logs", "What a run's agent printed; -f follows one that is still going."),
    "plagiarism": ("plagiarism", "Compare code with public notebooks and with other agents' runs."),
    "violations": ("violations", "Look for broken rules in code and logs."),
    "contamination": ("contamination", "Does a model know the competitions by heart?"),
    "verify": ("verify", "Are a group's runs what was recorded of them?"),
    "compare": ("compare", "What changed between two run groups."),
    "export": ("export", "The published grading report of a run group."),
    "import-report": ("import_report", "Take published grading reports into the tables."),
}
INTERRUPTED = 130


class _Commands(click.Group):
    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            return None
        command: click.Command = importlib.import_module(f"flows.commands.{COMMANDS[cmd_name][0]}").command
        return _with_settings(command)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, text) for name, (_, text) in COMMANDS.items()])


def _with_settings(command: click.Command) -> click.Command:
    """The command, which applies the settings before it runs; `--help` works without them."""
    wrapped = copy.copy(command)
    callback = command.callback
    assert callback is not None

    @functools.wraps(callback)
    def call(*args: Any, **options: Any) -> Any:
        from tasks.wiring.process import apply_settings

        apply_settings()
        return callback(*args, **options)

    wrapped.callback = call
    return wrapped


@click.command(cls=_Commands, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="mlebench-pipeline")
def cli() -> None:
    """MLE-bench as a data pipeline: prepare competitions, run agents in a sandbox, grade, report."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command; returns the exit code. What a user can mend ends in one line, never in a traceback."""
    try:
        code = cli.main(
            args=list(arguments) if arguments is not None else None, prog_name="mlebench", standalone_mode=False
        )
        return code if isinstance(code, int) else 0
    except click.exceptions.Abort:
        return _interrupted()
    except KeyboardInterrupt:
        return _interrupted()
    except click.ClickException as error:
        error.show()
        return error.exit_code
    except UserError as error:
        click.echo(f"mlebench: {error}", err=True)
        return 1


def _interrupted() -> int:
    click.echo("mlebench: stopped. What was finished is kept; the same command goes on from there.", err=True)
    return INTERRUPTED


if __name__ == "__main__":
    sys.exit(main())
