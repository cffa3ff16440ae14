"""mlebench du."""

from __future__ import annotations

from itertools import groupby

import click

from flows.commands.answers import answer, takes_json
from flows.commands.options import StoreOptions, takes

_JSON_FIELDS = ("kind", "name", "where", "bytes", "files", "state")


@click.command("du")
@takes(storage=StoreOptions)
@takes_json
def command(storage: StoreOptions) -> int:
    """Show the disk usage of the store, of the cache of local copies, and of the scratch disk."""
    from rich.console import Console
    from rich.table import Table

    from common.settings import get_settings
    from storage.cache import Cache
    from storage.upkeep.space import usage_of_machine, usage_of_store

    store, settings = storage.open(), get_settings()
    cache = Cache(settings.scratch / "cache", settings.cache_limit)
    usages = [*usage_of_store(store), *usage_of_machine(settings.scratch, cache)]
    if answer([{name: getattr(usage, name) for name in _JSON_FIELDS} for usage in usages]):
        return 0
    table = Table(title=f"{store.root} and {settings.scratch}", title_justify="left")
    for column in ("what", "name", "size", "files", "state"):
        table.add_column(column, justify="right" if column in ("size", "files") else "left", overflow="fold")
    for kind, group in groupby(usages, key=lambda usage: usage.kind):
        rows = list(group)
        for usage in rows if kind != "locks" else ():
            table.add_row(kind, usage.name, size(usage.bytes), f"{usage.files:,}" if usage.files else "", usage.state)
        if len(rows) > 1:
            table.add_row(kind, "all", size(sum(usage.bytes for usage in rows)), "", "", style="bold", end_section=True)
    console = Console(highlight=False)
    console.print(table)
    console.print(f"{size(sum(usage.bytes for usage in usages))} in total; mlebench gc removes data that is not needed")
    return 0


def size(count: int) -> str:
    """A number of bytes with a decimal unit.

    >>> size(1234567), size(5)
    ('1.2 MB', '5 B')
    """
    for unit, power in (("TB", 12), ("GB", 9), ("MB", 6), ("kB", 3)):
        if count >= 10**power:
            return f"{count / 10**power:,.1f} {unit}"
    return f"{count} B"
