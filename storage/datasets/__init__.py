"""The engine that prepares datasets, and prepared datasets as a store holds them.

job          what is prepared
materialise  from declaration to committed files
execute      single operations; archives, zipwriter, memory serve it
plan         chunks of bounded size, as values
checkpoint   finished chunks, so that an interrupted run resumes
manifest     one row a file
cluster      Dask
prepared     datasets of a store: which content is committed, local copies
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
    """Prepare a competition in this process, into `out`/public and `out`/private.

    Args:
        competition_id: of the competition.
        raw: the download's zip, or the directory that it unpacks to.
        out: the directory to write.
        edition: of the benchmark.
        params: overrides of the `params` in competition.yaml.
        folder: the competition's folder, if the registry does not know the id.

    Returns:
        The manifest, one row a file: part, path, bytes, hash, md5, source.
    """
    from storage.datasets.job import Job
    from storage.datasets.materialise import materialise

    return materialise(
        Job(competition_id, str(raw), str(out), edition, dict(params or {}), str(folder) if folder else None)
    )
