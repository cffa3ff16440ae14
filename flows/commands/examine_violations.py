"""The examination `violations` of `mlebench examine`."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, ClassVar

import click

from common.errors import UserError
from common.plain_json import read_json
from common.units import counted
from flows.commands.answers import answer, say
from flows.commands.external import Examined, shares, write_csv
from flows.commands.options import option


@dataclass(frozen=True)
class ViolationOptions:
    """What the language model is asked."""

    TITLE: ClassVar[str] = "Violations"
    questions: Annotated[
        Path | None,
        option(
            "--questions",
            type=click.Path(path_type=Path),
            help="JSON file with the questions to ask the language model, by their short names, instead of the "
            "built-in ones.",
        ),
    ] = None
    extra_prompt: Annotated[str, option("--extra-prompt", metavar="TEXT", help="Text that precedes the questions.")] = (
        ""
    )


def examine_violations(examined: Examined, options: ViolationOptions, output_dir: Path | None) -> int:
    """Search the code and logs of the runs for broken rules; returns the exit code."""
    from common.cleaning import clean
    from grading.integrity.findings import RULES
    from grading.integrity.questions import QUESTIONS, Asked
    from storage.schemas import TABLES
    from tasks.violations import find_violations

    questions: dict[str, str] = _questions(options.questions) if options.questions else dict(QUESTIONS.items())

    def on_next(name: str) -> None:
        click.echo(f"reading {name} ...", err=True)

    result = find_violations(examined.store, examined.run_group, on_next, Asked(questions, options.extra_prompt))
    for row in result.rows:
        if row["severity"] == "violation":
            line = f":{row['line']}" if row["line"] else ""
            location = f"{row['competition_id']}/{row['seed']} {row['file']}{line}".rstrip()
            say(clean(f"{location}: {RULES.get(row['rule'], row['rule'])}: {row['why']} [{row['by']}]"))
            if row["quote"]:
                say(f"    | {clean(row['quote'])}")
    notices = sum(row["severity"] == "notice" for row in result.rows)
    if result.model is None:
        say("no language model asked: set MLEBENCH_INTEGRITY_MODEL and a provider (docs/integrity.md)")
    else:
        say(
            f"{result.model} read {result.pieces} pieces, ${result.cost_usd:.2f}: {result.invented} claims dropped for "
            f"quotes that do not occur, {result.unreadable} answers not understood"
        )
    rule_shares = shares([row for row in result.rows if row["severity"] == "violation"], "rule", result.runs)
    for row in rule_shares:
        say(clean(f"{row['share']:6.1%} of the runs: {RULES.get(row['rule'], row['rule'])}"))
    say(f"{counted(result.runs, 'run')} examined, {result.flagged} to look at, {counted(notices, 'notice')}")
    if output_dir is not None:
        say(str(write_csv(output_dir, "violations", result.rows, TABLES["violations"].names)))
        write_csv(output_dir, "shares", rule_shares, ("rule", "runs", "share"))
    fields = {
        name: getattr(result, name) for name in ("rows", "runs", "flagged", "model", "pieces", "failed", "cost_usd")
    }
    run_group = None if examined.of_others else examined.run_group
    answer({"kind": "violations", "run_group": run_group, **fields})
    if result.failed:
        reason = next(row["why"] for row in result.rows if row["rule"] == "not-examined").split(": ", 1)[-1]
        click.echo(f"mlebench: {result.failed} of {result.pieces} pieces could not be examined: {reason}", err=True)
    return 1 if result.failed else 0


def _questions(path: Path) -> dict[str, str]:
    """The questions in a JSON file. Raises `UserError` if it is no object of texts."""
    questions = read_json(path)
    if (
        not isinstance(questions, dict)
        or not questions
        or not all(isinstance(question, str) and question for question in questions.values())
    ):
        raise UserError(f'{path} must be a JSON object with a question for each name: {{"name": "Did the agent ...?"}}')
    return questions
