"""What makes a prepared dataset complete: its manifest, and the commit marker, which is written last."""

from __future__ import annotations

import contextlib
import io
import json
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from common import plain_json
from storage.datasets.journal import FOLDER
from storage.datasets.write_order import remove_traces
from storage.writers import Destination

if TYPE_CHECKING:
    import pyarrow as pa

    from storage.datasets.job import Job

MANIFEST = "manifest.parquet"
MARKER = "commit.json"
ROW_GROUP_ROWS = 1 << 17
"""Rows of the manifest that are decoded at a time."""
DESCRIPTION = "description.md"
"""The text for agents, beside the public files. It is not part of the dataset: a run gets the text of its day."""


def commit(
    destination: Destination,
    manifest: pa.Table,
    job: Job,
    left_out: Sequence[Mapping[str, Any]] = (),
) -> None:
    """Write the manifest, and then the commit marker, of a dataset whose files are all written.

    The marker states what was left out of train, as the fields of `LeftOut`.

    A dataset with a key is in a store, where it has to survive a loss of power: its files reach the disk before the
    marker does. A plain directory survives the end of this process.
    """
    import pyarrow.parquet as pq

    remove_traces(destination, manifest)
    with destination.open(MANIFEST) as file:
        pq.write_table(manifest, file, row_group_size=ROW_GROUP_ROWS)
    if job.key:
        destination.sync()
    marker = {
        "competition": job.competition_id,
        "edition": job.edition,
        "key": job.key,
        "files": len(manifest),
        "bytes": bytes_of(manifest),
        "created_at": datetime.now(UTC).isoformat(timespec="seconds"),
        **({"recipe": job.recipe.to_json()} if job.recipe else {}),
        **({"left_out": list(left_out)} if left_out else {}),
    }
    destination.write(MARKER, [plain_json.dumps(marker).encode()])
    if job.key:
        destination.sync()  # the source of the dataset may be removed after this


def bytes_of(rows: pa.Table) -> int:
    """The bytes of the files in a manifest."""
    import pyarrow.compute as pc

    return int(pc.sum(rows["bytes"], min_count=0).as_py())


def is_complete(destination: Destination, job: Job) -> bool:
    """Whether the destination has the committed dataset of the job. Raises `ValueError` if it has another one."""
    try:
        marker = json.loads(destination.fs.cat_file(destination.path(MARKER)))
    except FileNotFoundError:
        return False
    if marker["key"] != job.key:
        raise ValueError(f"{destination.root} has the dataset {marker['key']}, not {job.key}")
    return True


def read_manifest_of(destination: Destination) -> pa.Table:
    """The manifest of a committed dataset."""
    import pyarrow.parquet as pq

    return pq.read_table(io.BytesIO(destination.fs.cat_file(destination.path(MANIFEST))))


def clear_destination(destination: Destination) -> None:
    """Remove the files of an earlier dataset, so that none of them become part of the new one."""
    for name in (FOLDER, "public", "private"):
        destination.remove(name)


def remove_commit_marker(destination: Destination) -> None:
    """Remove the commit marker. The dataset is then treated as missing until it is committed again."""
    with contextlib.suppress(FileNotFoundError):
        destination.fs.rm_file(destination.path(MARKER))
