"""Downloads into the store: fetched once, hashed, checked, and recorded last of all."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, TypedDict

from competitions.competition import Competition
from competitions.containers import open_container
from competitions.errors import DownloadError
from storage.sources import Source
from storage.store import Store


class DownloadRecord(TypedDict):
    """What `download.json` says of an archive. It outlives the archive where raw data are not kept."""

    hash: str
    md5: str
    bytes: int
    source: str
    version: str | None
    at: str


def recorded(store: Store, competition: Competition, source: Source) -> DownloadRecord | None:
    """The record of a complete download that is still what the source would serve, else None."""
    record: DownloadRecord | None = store.read_json(_record_url(store, competition.id))
    if record is None or record["source"] != source.name or record["version"] != source.version(competition):
        return None
    return record


def has_archive(store: Store, competition: Competition, record: DownloadRecord) -> bool:
    """Whether the recorded archive still lies in the store, by its size."""
    path = store.top.path(store.relative(store.raw(competition.id)))
    try:
        return bool(store.top.fs.size(path) == record["bytes"])
    except FileNotFoundError:
        return False


def acquire(
    store: Store,
    competition: Competition,
    source: Source,
    *,
    verify: bool = True,
    on_progress: Callable[[str], None] = lambda _: None,
) -> DownloadRecord:
    """The competition's archive in the store. Idempotent.

    With `verify` the archive's MD5 must be the one in competition.yaml, where that names one. Raises `DownloadError`
    for an archive that is cut, damaged or another one; the store then holds no record of it.
    """
    record = recorded(store, competition, source)
    if record is not None and has_archive(store, competition, record):
        return record
    store.remove(_record_url(store, competition.id))
    with tempfile.TemporaryDirectory(prefix="mlebench-download-") as folder:
        on_progress("fetching")
        path = source.fetch(competition, Path(folder))
        on_progress("checking")
        container = open_container(str(path))  # an archive without its directory at the end is cut
        if not container.sizes:
            raise DownloadError(f"{path.name} is empty; download it again")
        name = store.relative(store.raw(competition.id))
        written = store.top.link(name, path, md5=True)
        if written is None:
            with path.open("rb") as file:
                written = store.top.copy(name, file, md5=True)
    expected = competition.facts.checksums.download
    if verify and expected and written.md5 != expected:
        store.remove(store.raw(competition.id))
        raise DownloadError(
            f"{competition.id}: the archive's MD5 is {written.md5}, the published one is {expected}; "
            "download it again, or pass --skip-verification to use it all the same"
        )
    record = DownloadRecord(
        hash=written.hash,
        md5=written.md5 or "",
        bytes=written.bytes,
        source=source.name,
        version=source.version(competition),
        at=datetime.now(UTC).isoformat(timespec="seconds"),
    )
    store.write_json(_record_url(store, competition.id), record)
    return record


def discard_archive(store: Store, competition_id: str) -> None:
    """Remove the archive of a dataset that is prepared; its record stays, so that the dataset is not prepared again."""
    store.remove(store.raw(competition_id))


def _record_url(store: Store, competition_id: str) -> Any:
    return store.url("raw", competition_id, "download.json")
