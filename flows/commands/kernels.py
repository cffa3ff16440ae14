"""mlebench kernels."""

from __future__ import annotations

import click

from common.causes import explain
from common.errors import UserError
from common.units import counted
from competitions import registry
from flows.commands.options import Selection, StoreOptions, takes


@click.command("kernels")
@click.argument("competition_id", required=False)
@click.option(
    "--top", "--max-kernels", type=click.IntRange(1, 500), default=20, show_default=True, help="Number of notebooks."
)
@takes(selection=Selection, storage=StoreOptions)
def command(competition_id: str | None, top: int, selection: Selection, storage: StoreOptions) -> int:
    """Pull the most voted public notebooks of COMPETITION_ID, or of the selected competitions, into the store.

    They are stored as plain code. `mlebench plagiarism` compares submitted code with them. kernels/ID/index.parquet
    lists them with their votes, versions and the time of the pull. Of several competitions, one that fails does not
    stop the others; the exit code is then 1.
    """
    if (competition_id is None) == (not selection):
        raise UserError("name a competition, or select several with -c, --list, --split, --lite or --all")
    names = [competition_id] if competition_id is not None else selection.ids()
    for name in names:
        if registry.get(name).facts.source != "kaggle":
            raise UserError(f"{name} is not on Kaggle: it has no public notebooks")
    place = storage.open()
    place.require_usable()
    from common.settings import get_settings
    from storage.sources.kaggle.kernels import pull_kernels

    def report(line: str) -> None:
        click.echo(line, err=True)

    failed = 0
    for name in names:
        try:
            kernels = pull_kernels(place, name, top, report, get_settings().network_timeout)
        except UserError as error:
            if len(names) == 1:
                raise
            failed += 1
            report(f"{name}: {explain(error)}")
            continue
        for kernel in kernels:
            click.echo(f"{kernel.votes:6} votes  {kernel.ref}")
        click.echo(f"{counted(len(kernels), 'notebook')} in {place.shown(place.url('kernels', name))}")
    return 1 if failed else 0
