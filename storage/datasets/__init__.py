"""The engine that prepares datasets, and access to the prepared datasets of a store.

job             what to prepare: recipes and jobs
materialise     from declaration to committed files: the steps of preparing
declare         run prepare.py, write what it computes, save the plan
plan            the files to write, and their division into chunks
execute         write the files of a chunk
archives        zip, tar and 7z archives of members of a download
write_order     files whose order of writing would show their labels
reuse           what a dataset of the same download has already
manifest        one row per file
journal         finished chunks of a preparation, so that an interrupted one is resumed
commit          manifest and commit marker
executors       what runs the chunks: this process or several
cluster         Dask: clusters, and their executor
workers         Dask: set-up of workers, and proof that they run the same code
cluster_access  Dask: certificates, and the login of the dashboard
zipwriter       zip archives, written sequentially

current         which dataset of a competition is current
prepared        what is prepared, and whether preparing would change it
verify          checksums
local_copy      local copies of datasets in an object store
uses            who uses a dataset, and removal of those that nobody uses
adopt           datasets that the published benchmark has prepared
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pandas as pd

    from competitions.editions import Edition

LARGE_DOWNLOAD_BYTES = 256 << 20
"""Size of a download, unpacked, from which several processes are faster: starting each takes most of a second."""


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
    from storage.datasets.executors import ProcessPool, Serial
    from storage.datasets.job import Job, download_of
    from storage.datasets.materialise import materialise

    job = Job(competition_id, str(raw), str(out), edition, dict(params or {}), str(folder) if folder else None)
    large = sum(download_of(job).container.sizes.values()) >= LARGE_DOWNLOAD_BYTES
    manifest: pd.DataFrame = materialise(job, executor=ProcessPool() if large else Serial()).to_pandas()
    return manifest
