"""mlebench violations."""

from __future__ import annotations

from pathlib import Path

import click

from flows.commands.options import open_store, quiet_prefect, store_option
from flows.commands.refresh import refresh_report


@click.command("violations")
@click.argument("run_group")
@store_option
def command(run_group: str, store: str | None, data_dir: Path | None) -> None:
    """Look for broken rules in the code and logs of RUN_GROUP.

    Static detectors always; the language model of MLEBENCH_INTEGRITY_MODEL too, where one is set. What is found is for
    a person to judge: each finding quotes the line it rests on. All findings go to tables/violations.
    """
    quiet_prefect()
    from grading.integrity.findings import RULES
    from grading.page.cleaning import clean
    from tasks.violations import find_violations

    place = open_store(store, data_dir)
    found = find_violations(place, run_group, tell=lambda name: click.echo(f"reading {name} ...", err=True))
    for row in found.rows:
        if row["severity"] == "violation":
            line = f":{row['line']}" if row["line"] else ""
            where = f"{row['competition_id']}/{row['seed']} {row['file']}{line}".rstrip()
            click.echo(clean(f"{where}: {RULES[row['rule']]}: {row['why']} [{row['by']}]"))
            if row["quote"]:
                click.echo(f"    | {clean(row['quote'])}")
    notices = sum(row["severity"] == "notice" for row in found.rows)
    if found.model is None:
        click.echo("no language model asked: set MLEBENCH_INTEGRITY_MODEL and a provider (docs/integrity.md)")
    else:
        click.echo(
            f"{found.model} read {found.pieces} pieces, ${found.cost_usd:.2f}: {found.invented} claims dropped for "
            f"quotes that do not occur, {found.unreadable} answers not understood"
        )
    click.echo(f"{found.runs} runs examined, {found.flagged} to look at, {notices} notices")
    refresh_report(place, run_group)
