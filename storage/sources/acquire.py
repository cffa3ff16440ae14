"""Download archives into the store once, hash and verify them, and finally write a record."""

from __future__ import annotations

import contextlib
import os
import shutil
import tempfile
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, TypedDict

from common.causes import retrying
from common.patience import HOUR
from competitions.errors import DownloadError
from competitions.preparing.archives.containers import open_container
from competitions.preparing.archives.packing import pack
from storage.sources import BUNDLED, Downloadable, RemoteSource, Report, Source, SourceChanged
from storage.store import Store
from storage.writers import BLOCK_BYTES, HashingWriter, Written

MAX_RESTARTS = 3


class DownloadRecord(TypedDict):
    """Content of `download.json`. It remains when the archive is removed after preparing."""

    hash: str
    md5: str  # empty for a folder, which is packed here
    bytes: int
    source: str
    version: str | None
    at: str


def recorded(store: Store, competition: Downloadable, source: Source, *, renew: bool = False) -> DownloadRecord | None:
    """The record of a complete download; None if there is none.

    A download counts whatever its source was, and whether that still has it. With `renew` it counts only if `source`
    serves the same archive now; so do bundled downloads always, because code makes them, which can change.
    """
    record: DownloadRecord | None = store.read_json(_record_url(store, competition.id))
    if record is not None and (renew or source.name == BUNDLED) and not serves(source, competition, record):
        return None
    return record


def serves(source: Source, competition: Downloadable, record: DownloadRecord) -> bool:
    """Whether the recorded download came from `source`, which still has the same one as far as it can tell."""
    return record["source"] == source.name and record["version"] == source.version(competition)


def recorded_md5(store: Store, competition_id: str) -> str | None:
    """The MD5 of the archive that was downloaded last, from any source; None if there is no record of one."""
    record: DownloadRecord | None = store.read_json(_record_url(store, competition_id))
    return (record["md5"] or None) if record else None


def has_archive(store: Store, competition: Downloadable, record: DownloadRecord) -> bool:
    """Whether the store still has the recorded archive, with the right size."""
    path = store.top.path(store.relative(store.raw(competition.id)))
    try:
        return bool(store.top.fs.size(path) == record["bytes"])
    except FileNotFoundError:
        return False


def has_download(store: Store, competition: Downloadable, download_hash: str) -> bool:
    """Whether the archive in the store is the download with this hash."""
    record: DownloadRecord | None = store.read_json(_record_url(store, competition.id))
    return record is not None and record["hash"] == download_hash and has_archive(store, competition, record)


def acquire(
    store: Store,
    competition: Downloadable,
    source: Source,
    *,
    verify: bool = True,
    renew: bool = False,
    on_progress: Report = lambda _: None,
    patience: float = HOUR,
) -> DownloadRecord:
    """Download a competition's archive into the store if it is missing. Returns its record.

    Args:
        store: destination of the archive.
        competition: the competition.
        source: source of the archive.
        verify: compare the archive's MD5 with the published one, if that is known.
        renew: whether an archive that the store has only counts if `source` still serves the same one.
        on_progress: called with short texts.
        patience: seconds to wait for a store that fails after the transfer, because a new transfer costs more.

    Raises:
        DownloadError: the archive is truncated, damaged or not the published one. The store then has no record of it,
            and still has what it had before.
    """
    record = recorded(store, competition, source, renew=renew)
    if record is not None and has_archive(store, competition, record):
        return record
    written = _left_without_record(store, competition, on_progress)
    if written is None and isinstance(source, RemoteSource) and not store.top.local:
        written = _streamed(store, competition, source, verify, on_progress, patience)
    elif written is None:
        written = _fetched(store, competition, source, verify, on_progress)
    record = DownloadRecord(
        hash=written.hash,
        md5=written.md5 or "",
        bytes=written.bytes,
        source=source.name,
        version=source.version(competition),
        at=datetime.now(UTC).isoformat(timespec="seconds"),
    )
    store.top.sync()
    retrying(
        lambda: store.write_json(_record_url(store, competition.id), record),
        seconds=patience,
        on_wait=lambda text: on_progress(f"waiting {text}"),
    )
    return record


def _left_without_record(store: Store, competition: Downloadable, report: Report) -> Written | None:
    """Size and hashes of an archive of which a killed process wrote all but the record.

    None if there is no such archive, or if it is not the published one by its MD5: it could be an older version.
    """
    expected = competition.archive_md5
    archive = store.raw(competition.id)
    if not expected or not store.exists(archive):
        return None
    report("checking the archive that an interrupted download left")
    with (
        store.top.fs.open(store.top.path(store.relative(archive)), "rb") as file,
        open(os.devnull, "wb", buffering=0) as nowhere,  # noqa: PTH123
    ):
        hashing = HashingWriter(nowhere, md5=True)
        shutil.copyfileobj(file, hashing, BLOCK_BYTES)
    if hashing.written().md5 != expected:
        return None
    store.remove(store.url("raw", competition.id, "partial"))
    return hashing.written()


def _fetched(store: Store, competition: Downloadable, source: Source, verify: bool, report: Report) -> Written:
    """Fetch via a local file. A resumed download with a wrong result is repeated from the start."""
    while True:
        with _folder(store, competition, source) as folder:
            resumed = any(folder.glob("*.zip"))
            report("fetching")
            path = source.fetch(competition, folder, report)
            report("checking")
            try:
                return _placed(store, competition, path, verify)
            except DownloadError:
                if isinstance(source, RemoteSource):
                    shutil.rmtree(folder)
                if not resumed:
                    raise
                report("the resumed download is not the published archive; downloading it from the start")


@contextlib.contextmanager
def _folder(store: Store, competition: Downloadable, source: Source) -> Iterator[Path]:
    """A folder for the source to write to. For a remote source it is in the store, and is kept if the block fails."""
    partial_folder = store.local("raw", competition.id, "partial") if isinstance(source, RemoteSource) else None
    if partial_folder is None:
        with tempfile.TemporaryDirectory(prefix="mlebench-download-") as folder:
            yield Path(folder)
        return
    partial_folder.mkdir(parents=True, exist_ok=True)
    yield partial_folder
    shutil.rmtree(partial_folder, ignore_errors=True)


def _placed(store: Store, competition: Downloadable, path: Path, verify: bool) -> Written:
    """Put a local archive, or a folder with its content, into the store if it is complete and has the right MD5.

    Until then the store keeps an earlier archive, and its record. A folder has no MD5; the files that are prepared from
    it have.
    """
    container = open_container(str(path))  # fails for a truncated archive, because the directory is at the end
    if not container.sizes:
        raise DownloadError(f"{path.name} is empty; download it again")
    name, draft = store.relative(store.raw(competition.id)), f"raw/{competition.id}/new"
    if path.is_dir():
        with store.top.open(name, size=sum(container.sizes.values())) as sink:
            pack(container, sink)
            store.remove(_record_url(store, competition.id))
        return sink.written()
    try:
        written = store.top.link(draft, str(path), md5=True)
        if written is None:
            with path.open("rb") as file, store.top.open(name, md5=True) as sink:
                shutil.copyfileobj(file, sink, BLOCK_BYTES)
                _require_md5(competition, sink.written(), verify)
                store.remove(_record_url(store, competition.id))
            return sink.written()
        _require_md5(competition, written, verify)
        store.remove(_record_url(store, competition.id))
        os.replace(store.top.path(draft), store.top.path(name))  # noqa: PTH105
        return written
    finally:
        store.remove(store.url(draft))  # a second name of the file, if the store had the same one


def _streamed(
    store: Store, competition: Downloadable, source: Source, verify: bool, report: Report, patience: float
) -> Written:
    """Stream from the network to a remote store. The object becomes visible when size and MD5 have been verified."""
    assert isinstance(source, RemoteSource)
    for _ in range(MAX_RESTARTS):
        report("fetching")
        try:
            # A generous estimate, because the size is approximate.
            size = 2 * (competition.archive_bytes or 0)
            with store.top.open(store.relative(store.raw(competition.id)), md5=True, size=size) as sink:
                for piece in source.pieces(competition, report):
                    sink.write(piece)
                _require_md5(competition, sink.written(), verify)
                store.remove(_record_url(store, competition.id))
        except SourceChanged:
            continue
        except DownloadError:
            # Its bytes are wrong, or did not all arrive. Object stores do not show them, other file systems may. For an
            # error of the store nothing is removed: a finished archive that cannot be read now is not a damaged one.
            # With a record, it is an earlier archive that lies there.
            if store.read_json(_record_url(store, competition.id)) is None:
                store.remove(store.raw(competition.id))
            raise
        report("checking")
        try:
            files = retrying(
                lambda: open_container(store.raw(competition.id)).sizes,
                seconds=patience,
                on_wait=lambda text: report(f"waiting {text}"),
            )
            if not files:
                raise DownloadError(f"{competition.id}: the archive is empty; download it again")
        except DownloadError:
            store.remove(store.raw(competition.id))
            raise
        return sink.written()
    raise DownloadError(f"{competition.id}: the archive changed during the download; try again later")


def _require_md5(competition: Downloadable, written: Written, verify: bool) -> None:
    expected = competition.archive_md5
    if verify and expected and written.md5 != expected:
        raise DownloadError(
            f"{competition.id}: the archive's MD5 is {written.md5}, the published one is {expected}; download it "
            "again, give its content as a folder if it was packed again, or pass --skip-verification to use it anyway"
        )


def discard_archive(store: Store, competition_id: str) -> None:
    """Remove the archive of a prepared dataset. Its record is kept, so that the dataset is not prepared again."""
    store.remove(store.raw(competition_id))


def _record_url(store: Store, competition_id: str) -> Any:
    return store.url("raw", competition_id, "download.json")
