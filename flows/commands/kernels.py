"""mlebench kernels."""

from __future__ import annotations

from pathlib import Path

import click

from common.errors import UserError
from competitions import registry
from flows.commands.options import open_store, store_option


@click.command("kernels")
@click.argument("competition_id")
@click.option("--top", type=click.IntRange(1, 500), default=20, show_default=True, help="How many notebooks.")
@store_option
def command(competition_id: str, top: int, store: str | None, data_dir: Path | None) -> None:
    """Pull the most voted public notebooks of COMPETITION_ID into the store as plain code.

    They are what submitted code is compared with. kernels/ID/index.parquet says which, with how many votes, and when.
    """
    competition = registry.get(competition_id)
    if competition.facts.source != "kaggle":
        raise UserError(f"{competition_id} is not on Kaggle: it has no public notebooks")
    place = open_store(store, data_dir)
    place.check()
    from common.settings import get_settings
    from storage.sources.kaggle.kernels import pull_kernels

    def report(line: str) -> None:
        click.echo(line, err=True)

    kernels = pull_kernels(place, competition_id, top, report, get_settings().network_timeout)
    for kernel in kernels:
        click.echo(f"{kernel.votes:6} votes  {kernel.ref}")
    click.echo(
        f"{len(kernels)} notebooks in {place.local('kernels', competition_id) or place.url('kernels', competition_id)}"
    )
