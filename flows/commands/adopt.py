"""mlebench adopt."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from common.errors import UsageError, UserError
from competitions import registry
from flows.commands.answers import takes_json
from flows.commands.options import Selection, StoreOptions, takes


@click.command("adopt")
@click.argument("directory", type=click.Path(file_okay=False, path_type=Path))
@takes(selection=Selection, storage=StoreOptions)
@click.option("--copy", is_flag=True, help="Copy files, even where they could be linked.")
@click.option(
    "--skip-verification",
    is_flag=True,
    help="Adopt files that differ from the published checksums. `prepare` and `run` then need this option, too.",
)
@takes_json
def command(directory: Path, selection: Selection, storage: StoreOptions, copy: bool, skip_verification: bool) -> int:
    """Adopt data that the published benchmark has prepared in DIRECTORY.

    DIRECTORY has a folder for each competition, with prepared/public and prepared/private. Without a selection, all
    competitions that it has are adopted. Their files are compared with the published checksums. They are then linked if
    the store is on the same file system, and otherwise copied or uploaded. Already prepared competitions are skipped,
    and a failure does not stop the rest. Exit code 1 if any failed.
    """
    from storage.datasets.adopt import prepared_folder

    if not directory.is_dir():
        raise UsageError(f"{directory} is not a directory")
    prepared_ids = [name for name in registry.folders() if prepared_folder(directory, name)]
    ids = selection.ids() if selection else prepared_ids
    if not ids:
        raise UserError(f"{directory} has no folder <competition id>/prepared of a known competition")
    store = storage.open_usable(new=True)
    from flows.commands.session import run_flow

    def flow() -> Any:
        from flows.adopt import adopt

        return adopt(ids, store.root, str(directory.resolve()), not copy, not skip_verification)

    return run_flow(f"Adopting in {store.root}", flow)
