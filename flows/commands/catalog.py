"""mlebench list."""

from __future__ import annotations

import click

from common.errors import UserError
from competitions import registry
from flows.commands.answers import answer, say, takes_json
from flows.commands.availability import notices
from flows.commands.options import Selection, takes
from flows.commands.tables import show_table

_FIELDS = {"id", "name", "complexity", "category", "metric", "source", "availability"}


@click.command("list")
@takes(selection=Selection)
@takes_json
def command(selection: Selection) -> None:
    """List competitions with their split, category and metric, and why not everybody can download them."""
    ids = selection.ids() if selection else registry.list()
    facts = []
    for name in ids:
        try:
            facts.append(registry.get(name).facts)
        except UserError as error:  # the others are listed nevertheless
            if selection:
                raise
            click.echo(f"mlebench: {error}", err=True)
    if answer([fact.model_dump(include=_FIELDS) for fact in facts]):
        return
    rows = [
        (fact.id, fact.complexity, fact.category, f"{fact.metric.name} ({fact.metric.direction})") for fact in facts
    ]
    show_table(("COMPETITION", "SPLIT", "CATEGORY", "METRIC"), rows)
    stated = {fact.id: fact.availability for fact in facts if fact.availability is not None}
    if own := registry.own_splits().get(selection.split or ""):
        say(f"{own.split}: {own.split_description}")
    for line in notices(stated, len(facts)):
        say(line)
