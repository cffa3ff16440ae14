"""mlebench du."""

from __future__ import annotations

from itertools import groupby

import click

from common.units import data_size
from flows.commands.answers import answer, takes_json
from flows.commands.options import StoreOptions, takes
from flows.commands.tables import Cell, show_table

_JSON_FIELDS = ("kind", "name", "where", "bytes", "files", "state")


@click.command("du")
@takes(storage=StoreOptions)
@takes_json
def command(storage: StoreOptions) -> int:
    """Show the disk usage of the store, of the cache of local copies, and of the scratch disk."""
    from common.settings import get_settings
    from sandbox.rootless.roots import entries
    from storage.cache import Cache
    from storage.upkeep.space import DiskUsage, State, usage_of_machine, usage_of_store

    store, settings = storage.open(), get_settings()
    cache = Cache(settings.scratch / "cache", settings.cache_limit)
    usages = [*usage_of_store(store), *usage_of_machine(settings.scratch, cache)]
    for root in entries(settings.scratch):
        state: State = "in use" if root.in_use else "complete" if root.names else "old"
        if root.damaged:
            state = "damaged"
        usages.append(DiskUsage("roots", ", ".join(root.names) or root.digest[:12], root.digest, root.bytes, 0, state))
    if answer([{name: getattr(usage, name) for name in _JSON_FIELDS} for usage in usages]):
        return 0
    rows: list[tuple[Cell, ...]] = []
    for kind, group in groupby(usages, key=lambda usage: usage.kind):
        members = list(group)
        rows += [
            (kind, usage.name, data_size(usage.bytes), f"{usage.files:,}" if usage.files else "", usage.state)
            for usage in members
            if kind != "locks"
        ]
        if len(members) > 1:
            total = data_size(sum(usage.bytes for usage in members))
            rows.append(tuple((text, "bold") for text in (kind, "all", total, "", "")))
    title = f"{store.root} and {settings.scratch}"
    show_table(("WHAT", "NAME", "SIZE", "FILES", "STATE"), rows, title, right=("SIZE", "FILES"))
    click.echo(
        f"{data_size(sum(usage.bytes for usage in usages))} in total; mlebench gc --help says what can be removed"
    )
    return 0
