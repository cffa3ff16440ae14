"""References to the archive of a competition: requested editions that are not prepared yet need it.

Between its download and its preparation nobody holds a lease, and the archive must not be removed by a process that has
finished with another edition. Each process that will prepare an edition writes `locks/archive/<id>/<edition>-<n>.json`
while it holds the lease for the download. The process that commits the dataset removes these files.
"""

from __future__ import annotations

import hashlib
from datetime import UTC, datetime, timedelta

from common.processes import alive, identity
from competitions.editions import EDITIONS, Edition
from storage.dataset import Dataset
from storage.store import Store

MAX_REMOTE_AGE = timedelta(days=7)
"""Age from which a reference by a process on another machine does not count: the process is considered dead."""


def reference_archive(store: Store, dataset: Dataset) -> None:
    """Note that this process will prepare a dataset from the archive. Called with the lease for the download."""
    holder = identity()
    name = hashlib.blake2b(repr(holder).encode(), digest_size=6).hexdigest()
    record = {"holder": holder, "at": datetime.now(UTC).isoformat(timespec="seconds")}
    store.write_json(store.url("locks", "archive", dataset.competition_id, f"{dataset.edition}-{name}.json"), record)


def release_archive(store: Store, dataset: Dataset) -> None:
    """Remove all references for a dataset, which is prepared now, also those of other processes."""
    for url in store.glob(f"locks/archive/{dataset.competition_id}/{dataset.edition}-*.json"):
        store.remove(url)


def referencing_editions(store: Store, competition_id: str) -> list[Edition]:
    """The editions that a living process will prepare from the archive."""
    urls = store.glob(f"locks/archive/{competition_id}/*.json")
    names = {url.rsplit("/", 1)[1].split("-")[0] for url in urls if _counts(store, url)}
    return [edition for edition in EDITIONS if edition in names]


def _counts(store: Store, url: str) -> bool:
    """Whether the process that wrote the reference lives, as far as this machine can tell."""
    record = store.read_json(url)
    if record is None:
        return False
    lives = alive(record["holder"])
    return lives if lives is not None else datetime.now(UTC) - datetime.fromisoformat(record["at"]) < MAX_REMOTE_AGE
