"""mlebench grade."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import click

from competitions import registry
from competitions.errors import UserError
from flows.commands.options import edition_option, open_store, store_option


@click.command("grade")
@click.option(
    "--submission",
    required=True,
    type=click.Path(path_type=Path),
    help="JSONL: competition_id and submission_path a line.",
)
@click.option(
    "--output-dir", required=True, type=click.Path(file_okay=False, path_type=Path), help="Where the report is written."
)
@edition_option
@store_option
def command(submission: Path, output_dir: Path, edition: Any, store: str | None, data_dir: Path | None) -> int:
    """Grade every line of a JSONL file and write `<time>_grading_report.json`.

    A bad line or submission does not stop the others. Exit code 1 if any line could not be graded.
    """
    from grading.grader import Grader
    from grading.report import summarise
    from storage.prepared import local_part
    from storage.settings import get_settings

    if not submission.is_file():
        raise UserError(f"{submission} does not exist")
    place = open_store(store, data_dir)
    graders: dict[str, Grader] = {}
    reports, failed = [], 0
    for number, line in enumerate(submission.read_text("utf-8").splitlines(), 1):
        if not line.strip():
            continue
        try:
            name, path = _item(line)
            if name not in graders:
                prepared = local_part(place, name, edition, "private", get_settings().scratch)
                graders[name] = Grader(registry.get(name), prepared, edition)
            result = graders[name].grade(path)
        except UserError as error:
            click.echo(f"line {number}: {error}", err=True)
            failed += 1
            continue
        reports.append(result.report)
        shown = result.report.score if result.outcome == "valid" else f"{result.outcome}: {result.message}"
        click.echo(f"line {number}: {name}: {shown}", err=True)
        if result.detail:
            click.echo(result.detail, err=True)
            failed += 1
    output_dir.mkdir(parents=True, exist_ok=True)
    target = output_dir / f"{datetime.now(UTC):%Y-%m-%dT%H-%M-%S-%Z}_grading_report.json"
    target.write_text(summarise(reports).to_json(), "utf-8")
    click.echo(str(target))
    return 1 if failed else 0


def _item(line: str) -> tuple[str, Path]:
    try:
        item = json.loads(line)
        return str(item["competition_id"]), Path(str(item["submission_path"] or "/nonexistent"))
    except (ValueError, KeyError, TypeError) as error:
        raise UserError("not a JSON object with competition_id and submission_path") from error
