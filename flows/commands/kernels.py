"""mlebench kernels."""

from __future__ import annotations

from pathlib import Path

import click

from common.errors import UsageError, UserError
from common.units import counted
from competitions import registry
from flows.commands.answers import answer, say, takes_json
from flows.commands.failures import Failures
from flows.commands.options import IDS, Selection, StoreOptions, takes
from flows.commands.types import whole


@click.command("kernels")
@IDS
@click.option("--top", "--max-kernels", type=whole(1, 500), default=20, show_default=True, help="Number of notebooks.")
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
@takes_json
def command(
    ids: tuple[str, ...],
    top: int,
    written: Path | None,
    references: Path | None,
    selection: Selection,
    storage: StoreOptions,
) -> int:
    """Pull the most voted public notebooks of competitions into the store.

    They are stored as plain code. `mlebench examine` compares submitted code with them. kernels/ID/index.parquet
    lists them with their votes, versions and the time of the pull. With --write-references and --references, others can
    fetch the same set. Exit code 1 if a competition fails, which does not stop the others, or if a notebook is not as
    it was recorded.
    """
    from common.settings import get_settings
    from storage.sources.kaggle.kernels import Kernel, pull_kernels
    from storage.sources.kaggle.references import pull_references, read_references, references_of, write_references

    recorded = read_references(references) if references is not None else None
    selection = selection.with_ids(ids)
    names = sorted(recorded) if recorded is not None and not selection else selection.ids()
    for name in names:
        if registry.get(name).facts.source != "kaggle":
            raise UsageError(f"{name} is not on Kaggle: it has no public notebooks")
    if recorded is not None and not (names := [name for name in names if name in recorded]):
        raise UsageError(f"{references} has no notebooks of the selected competitions")
    store = storage.open_usable(new=True)
    timeout = get_settings().network_timeout

    def report(line: str) -> None:
        click.echo(line, err=True)

    def pull(name: str) -> tuple[list[Kernel], int]:
        if recorded is not None:
            return pull_references(store, name, recorded[name], report, timeout)
        return pull_kernels(store, name, top, report, timeout), 0

    failures, any_different = Failures(), False
    for name in names:
        try:
            kernels, different_count = pull(name)
        except UserError as error:
            if len(names) == 1:
                raise
            failures.tell(name, error)
            continue
        any_different |= different_count > 0
        answer([{"competition_id": name, "votes": kernel.votes, "notebook": kernel.ref} for kernel in kernels])
        for kernel in kernels:
            say(f"{kernel.votes:6} votes  {kernel.ref}")
        differ = f", {different_count} not as recorded" if different_count else ""
        say(f"{counted(len(kernels), 'notebook')} in {store.shown(store.url('kernels', name))}{differ}")
    if written is not None:
        stored_references = [reference for name in names for reference in references_of(store, name)]
        write_references(written, stored_references)
        say(f"{counted(len(stored_references), 'reference')} in {written}")
    return 1 if failures.count or any_different else 0
