"""mlebench violations."""

from __future__ import annotations

from pathlib import Path

import click

from common.errors import UserError
from common.plain_json import read_json
from common.units import counted
from flows.commands.answers import answer, say, takes_json
from flows.commands.external import read_external, shares, write_csv
from flows.commands.options import RUN_GROUP, StoreOptions, takes
from flows.commands.refresh import refresh_report


@click.command("violations")
@click.argument("run_group", type=RUN_GROUP, required=False)
@click.option(
    "--submission",
    type=click.Path(path_type=Path),
    help="Instead of a run group: JSONL file of another system's results, with competition_id, submission_path, "
    "code_path and logs_path on each line.",
)
@click.option(
    "--output-dir",
    type=click.Path(file_okay=False, path_type=Path),
    help="Also write violations.csv and shares.csv, the share of runs with each finding, into this folder.",
)
@click.option(
    "--questions",
    type=click.Path(path_type=Path),
    help="JSON file with the questions to ask the language model, by their short names, instead of the built-in ones.",
)
@click.option("--extra-prompt", default="", metavar="TEXT", help="Text that precedes the questions.")
@takes(storage=StoreOptions)
@takes_json
def command(
    run_group: str | None,
    submission: Path | None,
    output_dir: Path | None,
    questions: Path | None,
    extra_prompt: str,
    storage: StoreOptions,
) -> int:
    """Search the code and logs of RUN_GROUP for broken rules.

    Uses static detectors, and the language model of MLEBENCH_INTEGRITY_MODEL if it is set. The findings are for a
    person to judge; each quotes the line that it is based on. All are written to tables/violations. Exit code 1 if the
    model did not answer about a part; the same command asks again about the runs with such parts.
    """
    from common.cleaning import clean
    from grading.integrity.findings import RULES
    from grading.integrity.questions import QUESTIONS, Asked
    from storage.schemas import TABLES
    from tasks.violations import find_violations

    if (run_group is None) == (submission is None):
        raise UserError("name a run group, or a file with --submission")
    asked = Asked(_questions(questions) if questions else dict(QUESTIONS.items()), extra_prompt)

    def on_next(name: str) -> None:
        click.echo(f"reading {name} ...", err=True)

    store = storage.open() if submission is not None else storage.open_usable()
    if submission is not None:
        from tasks.external import GROUP, external_runs

        with external_runs(read_external(submission)) as external_store:
            result = find_violations(external_store, GROUP, on_next, asked)
    else:
        result = find_violations(store, str(run_group), on_next, asked)
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
    if run_group is not None:
        refresh_report(store, run_group)
    fields = {
        name: getattr(result, name) for name in ("rows", "runs", "flagged", "model", "pieces", "failed", "cost_usd")
    }
    answer({"run_group": run_group, **fields})
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
