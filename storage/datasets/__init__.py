"""The engine that prepares datasets, and access to the prepared datasets of a store.

job          specification of a dataset to prepare
materialise  from declaration to committed files
helpers      processes that copy files beside this one
work         the files to write, as values
execute      single operations, with the help of archives, zipwriter and memory
plan         chunks of bounded size, as values
drafts       what an edition declares together with another one
checkpoint   finished chunks, so that an interrupted run resumes
manifest     one row per file
cluster      Dask clusters
prepared     datasets of a store: committed content, local copies
verify       checksums
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pandas as pd

    from competitions.editions import Edition


def prepare(
    competition_id: str,
    raw: Path,
    out: Path,
    edition: Edition = "v1",
    params: Mapping[str, Any] | None = None,
    folder: Path | None = None,
) -> pd.DataFrame:
    """Prepare a competition on this machine, into `out`/public and `out`/private.

    Args:
        competition_id: id of the competition.
        raw: the downloaded zip, or the directory with its unpacked content.
        out: the directory to write to.
        edition: edition of the benchmark.
        params: overrides of the `params` in competition.yaml.
        folder: the competition's folder, if the registry does not know the id.

    Returns:
        The manifest with one row per file: part, path, bytes, hash, md5, source.
    """
    from storage.datasets.job import Job
    from storage.datasets.materialise import materialise_here

    job = Job(competition_id, str(raw), str(out), edition, dict(params or {}), str(folder) if folder else None)
    manifest: pd.DataFrame = materialise_here(job).to_pandas()
    return manifest
