"""mlebench violations."""

from __future__ import annotations

import click

from common.units import counted
from flows.commands.options import StoreOptions, quiet_prefect, takes
from flows.commands.refresh import refresh_report


@click.command("violations")
@click.argument("run_group")
@takes(storage=StoreOptions)
def command(run_group: str, storage: StoreOptions) -> int:
    """Search the code and logs of RUN_GROUP for broken rules.

    Uses static detectors, and the language model of MLEBENCH_INTEGRITY_MODEL if it is set. The findings are for a
    person to judge; each quotes the line that it is based on. All are written to tables/violations. Exit code 1 if the
    model did not answer about a part; the same command asks again about the runs with such parts.
    """
    quiet_prefect()
    from grading.integrity.findings import RULES
    from grading.page.cleaning import clean
    from tasks.violations import find_violations

    place = storage.open()
    found = find_violations(place, run_group, on_next=lambda name: click.echo(f"reading {name} ...", err=True))
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
    click.echo(f"{counted(found.runs, 'run')} examined, {found.flagged} to look at, {counted(notices, 'notice')}")
    refresh_report(place, run_group)
    if found.failed:
        why = next(row["why"] for row in found.rows if row["rule"] == "not-examined").split(": ", 1)[-1]
        click.echo(f"mlebench: {found.failed} of {found.pieces} pieces could not be examined: {why}", err=True)
    return 1 if found.failed else 0
