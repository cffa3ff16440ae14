"""mlebench issues."""

from __future__ import annotations

import textwrap
from typing import Any, get_args

import click

from common import plain_json
from competitions import registry
from competitions.editions import EDITIONS, Edition
from competitions.facts import CompetitionFacts, KnownIssue, Severity
from flows.commands.completion import COMPETITIONS


@click.command("issues")
@click.argument("ids", nargs=-1, metavar="[ID]...", shell_complete=COMPETITIONS)
@click.option("--edition", type=click.Choice(EDITIONS), help="Only issues that this edition leaves open.")
@click.option("--severity", type=click.Choice(get_args(Severity)), help="Only issues of this severity.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object on each line.")
def command(ids: tuple[str, ...], edition: Edition | None, severity: Severity | None, as_json: bool) -> None:
    """List the known issues of the benchmark: how severe each is, and whether v2 fixes it.

    Severities: labels (gives answers away), metric (the score can be raised without better predictions, or an invalid
    submission passes), noise (scores are higher, lower or less certain than they should be), cosmetic.
    """
    facts = [registry.get(name).facts for name in (registry.select(ids) if ids else registry.list())]
    listed_issues = [
        (competition_facts, issue)
        for competition_facts in facts
        for issue in competition_facts.issues("v1")
        if issue.open_in(edition or "v1") and severity in (None, issue.severity)
    ]
    if as_json:
        for competition_facts, issue in listed_issues:
            click.echo(plain_json.dumps(_row(competition_facts, issue)))
        return
    shown_id = None
    for competition_facts, issue in listed_issues:
        if competition_facts.id != shown_id:
            shown_id = competition_facts.id
            click.echo(click.style(competition_facts.id, bold=True))
        needs = ", needs agents without network" if issue.needs else ""
        click.echo(f"  {issue.id}: {issue.severity}, {issue.v2} in v2{needs}")
        click.echo(textwrap.indent(textwrap.fill(issue.about, 110), "    "))
    kept_count = sum(issue.v2 == "kept" for _, issue in listed_issues)
    click.echo(f"issues: {len(listed_issues)}; v2 fixes {len(listed_issues) - kept_count} and keeps {kept_count}")


def _row(facts: CompetitionFacts, issue: KnownIssue) -> dict[str, Any]:
    fields = issue.model_dump(include={"severity", "affects", "v1", "v2", "needs", "about"})
    return {"competition_id": facts.id, "issue": issue.id, **fields}
