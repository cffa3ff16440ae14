"""The download source `kaggle`."""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from common import plain_json
from common.locks import locked
from storage.sources.source import NETWORK_TIMEOUT, Downloadable, Report, SourceChanged

if TYPE_CHECKING:
    from storage.sources.kaggle.transfer import Identity

MAX_RESTARTS = 3


class Kaggle:
    """Downloads a competition's archive.

    With a local store, the file is downloaded to a folder of the store and hard-linked to its final name, without a
    second copy. With an object store, the bytes are uploaded as they arrive (`pieces`), without a local file. After an
    interrupted connection the download resumes within the same upload, but a new process has to start again.
    """

    name = "kaggle"

    def __init__(self, timeout: float = NETWORK_TIMEOUT) -> None:
        self.timeout = timeout

    def version(self, competition: Downloadable) -> str | None:
        """None, because it would take a request. The archive is identified by the MD5 in competition.yaml."""
        return None

    def at_hand(self, competition: Downloadable) -> bool:
        """Never."""
        return False

    def fetch(self, competition: Downloadable, folder: Path, report: Report = lambda _: None) -> Path:
        """Download to `folder`, resuming a partial file of an earlier download.

        A partial file is only used if a note identifies its archive and Kaggle still serves that archive. Raises
        `KaggleError`.
        """
        from storage.sources.kaggle.transfer import Transfer

        path, note = folder / f"{competition.id}.zip", folder / "of.json"
        with _exclusively(folder, competition.id):
            for _ in range(MAX_RESTARTS):
                offset, known_identity = _partial(path, note)
                transfer = Transfer(competition.id, report, known_identity, self.timeout)
                try:
                    with path.open("r+b" if offset else "wb") as file:
                        file.seek(offset)
                        file.truncate()
                        for piece in transfer.pieces(offset):
                            if transfer.identity != known_identity:
                                known_identity = transfer.identity
                                note.write_text(plain_json.dumps(known_identity), "utf-8")
                            file.write(piece)
                        file.flush()
                        os.fsync(file.fileno())
                except SourceChanged:
                    report("Kaggle serves another archive now; downloading it from the start")
                    path.unlink()
                else:
                    return path
        raise _keeps_changing(competition.id)

    def pieces(self, competition: Downloadable, report: Report = lambda _: None) -> Iterator[bytes]:
        """Yield the archive's bytes. Raises `KaggleError`, or `SourceChanged` if the download has to start again."""
        from storage.sources.kaggle.transfer import Transfer

        return Transfer(competition.id, report, timeout=self.timeout).pieces()


def _partial(path: Path, note: Path) -> tuple[int, Identity | None]:
    """Number of bytes in the partial file, and identity of its archive; (0, None) if unknown."""
    from storage.sources.kaggle.transfer import Identity

    try:
        identity, size = Identity(*json.loads(note.read_text("utf-8"))), path.stat().st_size
    except (OSError, ValueError, TypeError):
        return 0, None
    if identity.validator is None or size == 0 or (identity.size is not None and size > identity.size):
        return 0, None
    return size, identity


@contextlib.contextmanager
def _exclusively(folder: Path, competition_id: str) -> Iterator[None]:
    """Exclude other processes, because two writers would damage the file."""
    from storage.sources.kaggle.errors import KaggleError

    with locked(folder / "lock") as mine:
        if mine is None:
            raise KaggleError(f"{competition_id}: another process is downloading it; wait until it has finished")
        yield


def _keeps_changing(competition_id: str) -> Exception:
    from storage.sources.kaggle.errors import Unreachable

    return Unreachable(f"{competition_id}: Kaggle serves another archive each time; try again later")
