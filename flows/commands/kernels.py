"""mlebench kernels."""

from __future__ import annotations

from pathlib import Path

import click

from common.causes import explain
from common.errors import UserError
from common.units import counted
from competitions import registry
from flows.commands.completion import COMPETITIONS
from flows.commands.options import Selection, StoreOptions, takes


@click.command("kernels")
@click.argument("competition_id", required=False, shell_complete=COMPETITIONS)
@click.option(
    "--top", "--max-kernels", type=click.IntRange(1, 500), default=20, show_default=True, help="Number of notebooks."
)
@click.option(
    "--write-references",
    "written",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Also write the notebooks, their versions and the hashes of their code into this CSV file.",
)
@click.option(
    "--references",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Fetch the notebooks that this file names, instead of the most voted ones. Without a selection: all of them.",
)
@takes(selection=Selection, storage=StoreOptions)
def command(
    competition_id: str | None,
    top: int,
    written: Path | None,
    references: Path | None,
    selection: Selection,
    storage: StoreOptions,
) -> int:
    """Pull the most voted public notebooks of COMPETITION_ID, or of the selected competitions, into the store.

    They are stored as plain code. `mlebench plagiarism` compares submitted code with them. kernels/ID/index.parquet
    lists them with their votes, versions and the time of the pull. With --write-references and --references, others can
    fetch the same set. Exit code 1 if a competition fails, which does not stop the others, or if a notebook is not as
    it was recorded.
    """
    from common.settings import get_settings
    from storage.sources.kaggle.kernels import Kernel, pull_kernels
    from storage.sources.kaggle.references import pull_references, read_references, references_of, write_references

    recorded = read_references(references) if references is not None else None
    if competition_id is not None and selection:
        raise UserError(_SELECTION_ERROR)
    if competition_id is not None:
        names = [competition_id]
    elif selection:
        names = selection.ids()
    elif recorded is not None:
        names = sorted(recorded)
    else:
        raise UserError(_SELECTION_ERROR)
    for name in names:
        if registry.get(name).facts.source != "kaggle":
            raise UserError(f"{name} is not on Kaggle: it has no public notebooks")
    if recorded is not None and not (names := [name for name in names if name in recorded]):
        raise UserError(f"{references} has no notebooks of the selected competitions")
    store = storage.open()
    store.require_usable()
    timeout = get_settings().network_timeout

    def report(line: str) -> None:
        click.echo(line, err=True)

    def pull(name: str) -> tuple[list[Kernel], int]:
        if recorded is not None:
            return pull_references(store, name, recorded[name], report, timeout)
        return pull_kernels(store, name, top, report, timeout), 0

    failed = 0
    for name in names:
        try:
            kernels, different_count = pull(name)
        except UserError as error:
            if len(names) == 1:
                raise
            failed += 1
            report(f"{name}: {explain(error)}")
            continue
        failed += different_count > 0
        for kernel in kernels:
            click.echo(f"{kernel.votes:6} votes  {kernel.ref}")
        differ = f", {different_count} not as recorded" if different_count else ""
        click.echo(f"{counted(len(kernels), 'notebook')} in {store.shown(store.url('kernels', name))}{differ}")
    if written is not None:
        stored_references = [reference for name in names for reference in references_of(store, name)]
        write_references(written, stored_references)
        click.echo(f"{counted(len(stored_references), 'reference')} in {written}")
    return 1 if failed else 0


_SELECTION_ERROR = "name a competition, or select several with -c, --list, --split, --lite or --all"
