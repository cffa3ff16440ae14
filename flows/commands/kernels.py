"""mlebench kernels."""

from __future__ import annotations

import click

from common.errors import UserError
from common.units import counted
from competitions import registry
from flows.commands.options import StoreOptions, takes


@click.command("kernels")
@click.argument("competition_id")
@click.option("--top", type=click.IntRange(1, 500), default=20, show_default=True, help="Number of notebooks.")
@takes(storage=StoreOptions)
def command(competition_id: str, top: int, storage: StoreOptions) -> None:
    """Pull the most voted public notebooks of COMPETITION_ID into the store as plain code.

    `mlebench plagiarism` compares submitted code with them. kernels/ID/index.parquet lists them with their votes
    and the time of the pull.
    """
    competition = registry.get(competition_id)
    if competition.facts.source != "kaggle":
        raise UserError(f"{competition_id} is not on Kaggle: it has no public notebooks")
    place = storage.open()
    place.require_usable()
    from common.settings import get_settings
    from storage.sources.kaggle.kernels import pull_kernels

    def report(line: str) -> None:
        click.echo(line, err=True)

    kernels = pull_kernels(place, competition_id, top, report, get_settings().network_timeout)
    for kernel in kernels:
        click.echo(f"{kernel.votes:6} votes  {kernel.ref}")
    click.echo(f"{counted(len(kernels), 'notebook')} in {place.shown(place.url('kernels', competition_id))}")
