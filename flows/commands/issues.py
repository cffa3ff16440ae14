"""mlebench issues."""

from __future__ import annotations

import textwrap
from typing import Any, get_args

import click

from competitions import registry
from competitions.editions import EDITIONS, Edition
from competitions.facts import CompetitionFacts, KnownIssue, Severity
from flows.commands.answers import answer, takes_json
from flows.commands.options import IDS, Selection, takes


@click.command("issues")
@IDS
@takes(selection=Selection)
@click.option("--edition", type=click.Choice(EDITIONS), help="Only issues that this edition leaves open.")
@click.option("--severity", type=click.Choice(get_args(Severity)), help="Only issues of this severity.")
@takes_json
def command(ids: tuple[str, ...], selection: Selection, edition: Edition | None, severity: Severity | None) -> None:
    """List the known issues of the benchmark, or of some competitions: how severe each is, and whether v2 fixes it.

    Severities: labels (gives answers away), metric (the score can be raised without better predictions, or an invalid
    submission passes), noise (scores are higher, lower or less certain than they should be), cosmetic.
    """
    selection = selection.with_ids(ids)
    facts = [registry.get(name).facts for name in (selection.ids() if selection else registry.list())]
    listed_issues = [
        (competition_facts, issue)
        for competition_facts in facts
        for issue in competition_facts.issues("v1")
        if issue.open_in(edition or "v1") and severity in (None, issue.severity)
    ]
    if answer([_row(competition_facts, issue) for competition_facts, issue in listed_issues]):
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
