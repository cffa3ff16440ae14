"""mlebench prepare."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from flows.commands.options import open_store, preparation, raw_directory, selected, selection, store_option


@click.command("prepare")
@selection
@preparation
@store_option
@click.option("--list", "show", is_flag=True, help="Only list what is selected.")
def command(
    raw_dir: Path | None,
    keep_raw: bool,
    skip_verification: bool,
    edition: Any,
    store: str | None,
    data_dir: Path | None,
    show: bool,
    **which: Any,
) -> int:
    """Download, split and verify competitions.

    What is prepared already is reused; one failure does not stop the others. Exit code 1 if any failed.
    """
    if show:
        from competitions import registry

        chosen = any(which.values())
        click.echo("\n".join(selected(**which) if chosen else registry.list()))
        return 0
    ids = selected(**which)
    place = open_store(store, data_dir)
    place.check()
    raw = raw_directory(raw_dir)
    from storage.prepared import is_prepared

    if all(is_prepared(place, name, edition, raw, verified=not skip_verification) for name in ids):
        click.echo(f"{len(ids)} reused: all prepared already in {place.root}")
        return 0
    from flows.commands.session import run_flow

    def flow() -> Any:
        from flows.prepare import prepare

        return prepare(ids, place.root, edition, raw, keep_raw, skip_verification)

    return run_flow(f"Preparing in {place.root}", flow)
