"""Which editions still want the archive of a competition: those that were requested and are not prepared yet.

Between its download and its preparation nobody holds a lease, and the archive must not be removed by a process that has
finished with another edition. Each process that will prepare an edition writes `locks/archive/<id>/<edition>-<n>.json`
while it holds the lease for the download. Who commits the dataset removes these files.
"""

from __future__ import annotations

import hashlib
from datetime import UTC, datetime, timedelta

from common.processes import alive, identity
from competitions.editions import EDITIONS, Edition
from storage.dataset import Dataset
from storage.store import Store

_FORGOTTEN = timedelta(days=7)  # age at which a process on another machine is considered dead


def want_archive(store: Store, dataset: Dataset) -> None:
    """Note that this process will prepare a dataset from the archive. Called with the lease for the download."""
    holder = identity()
    name = hashlib.blake2b(repr(holder).encode(), digest_size=6).hexdigest()
    record = {"holder": holder, "at": datetime.now(UTC).isoformat(timespec="seconds")}
    store.write_json(store.url("locks", "archive", dataset.competition_id, f"{dataset.edition}-{name}.json"), record)


def no_longer_wanted(store: Store, dataset: Dataset) -> None:
    """Note that a dataset is prepared, whoever wanted it."""
    for url in store.glob(f"locks/archive/{dataset.competition_id}/{dataset.edition}-*.json"):
        store.remove(url)


def wanted(store: Store, competition_id: str) -> list[Edition]:
    """The editions that a living process will prepare from the archive."""
    found = {url.rsplit("/", 1)[1].split("-")[0]: url for url in _notes(store, competition_id) if _lives(store, url)}
    return [edition for edition in EDITIONS if edition in found]


def _notes(store: Store, competition_id: str) -> list[str]:
    return store.glob(f"locks/archive/{competition_id}/*.json")


def _lives(store: Store, url: str) -> bool:
    record = store.read_json(url)
    if record is None:
        return False
    here = alive(record["holder"])
    return here if here is not None else datetime.now(UTC) - datetime.fromisoformat(record["at"]) < _FORGOTTEN
