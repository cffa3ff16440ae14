"""Downloads into the store: fetched once, hashed, checked, and recorded last of all."""

from __future__ import annotations

import contextlib
import shutil
import tempfile
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, TypedDict

from competitions.competition import Competition
from competitions.errors import DownloadError
from competitions.preparing.archives.containers import open_container
from storage.sources import Remote, Source, SourceChanged, Tell
from storage.store import Store
from storage.writers import Written

_RESTARTS = 3


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
    on_progress: Tell = lambda _: None,
) -> DownloadRecord:
    """The competition's archive in the store. Idempotent.

    With `verify` the archive's MD5 must be the one in competition.yaml, where that names one. Raises `DownloadError`
    for an archive that is cut, damaged or another one; the store then holds no record of it.
    """
    record = recorded(store, competition, source)
    if record is not None and has_archive(store, competition, record):
        return record
    store.remove(_record_url(store, competition.id))
    receive = _streamed if isinstance(source, Remote) and not store.top.local else _fetched
    written = receive(store, competition, source, verify, on_progress)
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


def _fetched(store: Store, competition: Competition, source: Source, verify: bool, tell: Tell) -> Written:
    """Through a file on this machine. A second time if what an earlier attempt had left turns out not to fit."""
    while True:
        with _folder(store, competition, source) as folder:
            resumed = any(folder.glob("*.zip"))
            tell("fetching")
            path = source.fetch(competition, folder, tell)
            tell("checking")
            try:
                return _placed(store, competition, path, verify)
            except DownloadError:
                if isinstance(source, Remote):
                    shutil.rmtree(folder)
                if not resumed:
                    raise
                tell("what was resumed is not the published archive; downloading all of it")


@contextlib.contextmanager
def _folder(store: Store, competition: Competition, source: Source) -> Iterator[Path]:
    """Where a source may write. What comes over a network lies inside the store, and stays when the block fails."""
    kept = store.local("raw", competition.id, "partial") if isinstance(source, Remote) else None
    if kept is None:
        with tempfile.TemporaryDirectory(prefix="mlebench-download-") as folder:
            yield Path(folder)
        return
    kept.mkdir(parents=True, exist_ok=True)
    yield kept
    shutil.rmtree(kept, ignore_errors=True)


def _placed(store: Store, competition: Competition, path: Path, verify: bool) -> Written:
    """The local archive `path` in its place in the store, if it is whole and the right one."""
    container = open_container(str(path))  # an archive without its directory at the end is cut
    if not container.sizes:
        raise DownloadError(f"{path.name} is empty; download it again")
    name = store.relative(store.raw(competition.id))
    written = store.top.link(name, str(path), md5=True)
    if written is None:
        with path.open("rb") as file:
            written = store.top.copy(name, file, md5=True)
    try:
        _require_md5(competition, written, verify)
    except DownloadError:
        store.remove(store.raw(competition.id))
        raise
    return written


def _streamed(store: Store, competition: Competition, source: Source, verify: bool, tell: Tell) -> Written:
    """Straight from the network to a store elsewhere. Nothing is visible there before size and MD5 are right."""
    assert isinstance(source, Remote)
    for _ in range(_RESTARTS):
        tell("fetching")
        try:
            size = 2 * (competition.facts.size_bytes or 0)  # a generous guess: what is stated is approximate
            with store.top.open(store.relative(store.raw(competition.id)), md5=True, size=size) as sink:
                for piece in source.pieces(competition, tell):
                    sink.write(piece)
                _require_md5(competition, sink.written(), verify)
        except SourceChanged:
            continue
        except BaseException:
            # Object stores show nothing unfinished; a file system that does must not keep it.
            with contextlib.suppress(OSError):
                store.remove(store.raw(competition.id))
            raise
        tell("checking")
        try:
            if not open_container(store.raw(competition.id)).sizes:
                raise DownloadError(f"{competition.id}: the archive is empty; download it again")
        except DownloadError:
            store.remove(store.raw(competition.id))
            raise
        return sink.written()
    raise DownloadError(f"{competition.id}: the archive changed while it was downloaded; try again later")


def _require_md5(competition: Competition, written: Written, verify: bool) -> None:
    expected = competition.facts.checksums.download
    if verify and expected and written.md5 != expected:
        raise DownloadError(
            f"{competition.id}: the archive's MD5 is {written.md5}, the published one is {expected}; download it "
            "again, or pass --skip-verification to use it all the same"
        )


def discard_archive(store: Store, competition_id: str) -> None:
    """Remove the archive of a dataset that is prepared; its record stays, so that the dataset is not prepared again."""
    store.remove(store.raw(competition_id))


def _record_url(store: Store, competition_id: str) -> Any:
    return store.url("raw", competition_id, "download.json")
