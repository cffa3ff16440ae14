"""Adopt the prepared data of the published benchmark, instead of downloading and splitting."""

from __future__ import annotations

from pathlib import Path

from common import progress
from common.errors import UserError
from common.units import counted, data_size
from competitions import registry
from storage.datasets.adopt import adopt, prepared_folder
from storage.datasets.materialise import Progress
from tasks.wiring.context import open_store


def adopt_dataset(competition_id: str, store_url: str, directory: str, link: bool = True, compare: bool = True) -> str:
    """Adopt the prepared data of a competition; returns a sentence about it, see `storage.datasets.adopt.adopt`.

    Raises `UserError` or `ChecksumMismatch` if the data are incomplete or not those of the published benchmark.
    """
    store, competition = open_store(store_url), registry.get(competition_id)
    folder = prepared_folder(Path(directory), competition_id)
    if folder is None:
        raise UserError(f"{directory} has no {competition_id}/prepared with public and private")

    def show(now: Progress) -> None:
        progress.report(competition_id, "adopt", f"{now.files}/{now.files_total} files", now.bytes, now.bytes_total)

    progress.report(competition_id, "compare")
    adopted = adopt(store, competition, folder, link=link, compare=compare, on_progress=show)
    compared = f"{counted(adopted.compared, 'published checksum')} equal" if compare else "checksums not compared"
    return f"{counted(adopted.files, 'file')}, {data_size(adopted.bytes)}, {compared}"
