"""mlebench gc."""

from __future__ import annotations

from typing import Any

import click

from competitions.editions import EDITIONS
from flows.commands.du import size
from flows.commands.options import StoreOptions, takes


@click.command("gc")
@click.option("--raw", is_flag=True, help="Downloaded archives of competitions that are prepared.")
@click.option("--edition", type=click.Choice(EDITIONS), help="All prepared datasets of this edition.")
@click.option("--orphans", is_flag=True, help="Incomplete datasets, downloads and uploads that nobody works on.")
@click.option("--cache", "copies", is_flag=True, help="Local copies of prepared data.")
@click.option("--dry-run", "dry", is_flag=True, help="Only say what would go.")
@takes(storage=StoreOptions)
def command(
    raw: bool,
    edition: Any,
    orphans: bool,
    copies: bool,
    dry: bool,
    storage: StoreOptions,
) -> int:
    """Remove what is not needed any more, and say how much space that gives.

    Only what is named goes, and nothing of it that is in use at this moment, by whatever process.
    """
    if not (raw or edition or orphans or copies):
        raise click.UsageError("say what may go: --raw, --edition, --orphans, --cache")
    from common.settings import get_settings
    from storage.cache import Cache
    from storage.upkeep import gc as collect

    place, settings = storage.open(), get_settings()
    found = collect.everything(place) if raw or edition or orphans else []
    steps = []
    if edition:
        steps.append(collect.edition_datasets(place, found, edition, dry))
    if raw:
        steps.append(collect.raw_archives(place, found, dry))
    if orphans:
        steps.append(collect.orphans(place, found, dry))
    if copies:
        cache = Cache(settings.scratch / "cache", settings.cache_limit)
        steps.append(collect.local_copies(cache, settings.scratch, dry))
    gone = 0
    for step in steps:
        for each in step:
            gone += each.bytes
            click.echo(
                f"{'would remove' if dry else 'removed'} {each.kind} {each.name} {each.state}, {size(each.bytes)}"
            )
    click.echo(f"{size(gone)} {'would be freed' if dry else 'freed'}")
    return 0
