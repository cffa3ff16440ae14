"""mlebench list."""

from __future__ import annotations

from dataclasses import replace

import click

from common import plain_json
from common.errors import UserError
from competitions import registry
from flows.commands.options import Selection, takes


@click.command("list")
@takes(selection=Selection)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object on each line.")
def command(as_json: bool, selection: Selection) -> None:
    """List competitions with their split, category and metric."""
    ids = selection.ids() if selection else replace(selection, competitions=tuple(registry.list())).ids()
    facts = []
    for name in ids:
        try:
            facts.append(registry.get(name).facts)
        except UserError as error:  # the others are listed nevertheless
            if selection:
                raise
            click.echo(f"mlebench: {error}", err=True)
    if as_json:
        for fact in facts:
            click.echo(
                plain_json.dumps(fact.model_dump(include={"id", "name", "complexity", "category", "metric", "source"}))
            )
        return
    width = max(len(name) for name in ids)
    for fact in facts:
        click.echo(
            f"{fact.id:{width}}  {fact.complexity:6}  {fact.category:20}  {fact.metric.name} ({fact.metric.direction})"
        )
