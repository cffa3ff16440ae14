"""mlebench prepare."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from common.errors import UserError
from flows.commands.options import open_store, preparation, raw_directory, selected, selection, store_option
from storage.store import Store


@click.command("prepare")
@selection
@preparation
@store_option
@click.option(
    "--official-description",
    "official",
    is_flag=True,
    help="Fetch Kaggle's own description and lay it beside ours for agents.",
)
def command(
    raw_dir: Path | None,
    keep_raw: bool,
    skip_verification: bool,
    edition: Any,
    store: str | None,
    data_dir: Path | None,
    official: bool,
    **which: Any,
) -> int:
    """Download, split and verify competitions.

    What is prepared already is reused; one failure does not stop the others. Exit code 1 if any failed.
    """
    ids = selected(**which)
    place = open_store(store, data_dir)
    place.check()
    raw = raw_directory(raw_dir)
    from storage.dataset import Dataset
    from tasks.wiring.stores import already_prepared

    verified = not skip_verification
    todo = [name for name in ids if not already_prepared(place, Dataset(edition, name), raw, verified)]
    if not todo:
        click.echo(f"{len(ids)} reused: all prepared already in {place.root}")
        return _official(ids, place, edition) if official else 0
    _require_room(place, todo)
    from flows.commands.session import run_flow

    def flow() -> Any:
        from flows.prepare import prepare

        return prepare(ids, place.root, edition, raw, keep_raw, skip_verification)

    code = run_flow(f"Preparing in {place.root}", flow)
    return max(code, _official(ids, place, edition)) if official else code


def _require_room(store: Store, ids: list[str]) -> None:
    """Raise before hours of work what would end them."""
    from flows.health import check_disk

    finding = check_disk(store, ids)
    if finding.verdict == "fail":
        raise UserError(f"not enough room in {store.root}: {finding.message}; {finding.remedy}")


def _official(ids: list[str], store: Store, edition: Any) -> int:
    """Lay Kaggle's description beside ours for all that are prepared; returns the exit code."""
    from common.settings import get_settings
    from competitions import registry
    from storage.dataset import Dataset
    from storage.datasets.prepared import committed_key
    from storage.sources.kaggle.pages import write_official_description

    code, timeout = 0, get_settings().network_timeout
    for competition in map(registry.get, ids):
        dataset = Dataset(edition, competition.id)
        if competition.facts.source != "kaggle" or committed_key(store, dataset) is None:
            continue
        try:
            url = write_official_description(store, dataset, competition, timeout)
            click.echo(f"{competition.id}: {url}")
        except UserError as error:
            click.echo(f"mlebench: {error}", err=True)
            code = 1
    return code
