"""The download source `kaggle`."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from competitions.competition import Competition
from storage.sources.source import SourceChanged, Tell

if TYPE_CHECKING:
    from storage.sources.kaggle.transfer import Identity

_RESTARTS = 3


class Kaggle:
    """Downloads a competition's archive.

    On a local store the file grows inside the store, beside the place where it will lie, and takes its name by a hard
    link: no second copy. An object store is written to while the bytes come in (`pieces`), and needs no local disk; a
    cut connection goes on within the same upload, but a process that dies begins anew, for an unfinished upload does
    not exist.
    """

    name = "kaggle"

    def version(self, competition: Competition) -> str | None:
        """Not known without asking; the archive's MD5 in competition.yaml is the judge."""
        return None

    def fetch(self, competition: Competition, folder: Path, tell: Tell = lambda _: None) -> Path:
        """Download into `folder`, going on from what an earlier attempt left there.

        What is there counts only with a note of which archive it is a part of, and only if Kaggle still serves that
        one: neither its age nor its size make a file whole. Raises `KaggleError`.
        """
        from storage.sources.kaggle.transfer import Transfer

        path, note = folder / f"{competition.id}.zip", folder / "of.json"
        with _alone(folder, competition.id):
            for _ in range(_RESTARTS):
                offset, known = _held(path, note)
                transfer = Transfer(competition.id, tell, known)
                try:
                    with path.open("r+b" if offset else "wb") as file:
                        file.seek(offset)
                        file.truncate()
                        for piece in transfer.pieces(offset):
                            if transfer.identity != known:
                                known = transfer.identity
                                note.write_text(json.dumps(known), "utf-8")
                            file.write(piece)
                        file.flush()
                        os.fsync(file.fileno())
                except SourceChanged:
                    tell("Kaggle serves another archive now; downloading it from the start")
                    path.unlink()
                else:
                    return path
        raise _unsteady(competition.id)

    def pieces(self, competition: Competition, tell: Tell = lambda _: None) -> Iterator[bytes]:
        """The archive's bytes front to back. Raises `KaggleError`, or `SourceChanged` if it has to be begun anew."""
        from storage.sources.kaggle.transfer import Transfer

        return Transfer(competition.id, tell).pieces()


def _held(path: Path, note: Path) -> tuple[int, Identity | None]:
    """How many bytes are held of which archive; none where that is not certain."""
    from storage.sources.kaggle.transfer import Identity

    try:
        identity, size = Identity(*json.loads(note.read_text("utf-8"))), path.stat().st_size
    except (OSError, ValueError, TypeError):
        return 0, None
    if identity.validator is None or size == 0 or (identity.size is not None and size > identity.size):
        return 0, None
    return size, identity


@contextlib.contextmanager
def _alone(folder: Path, competition_id: str) -> Iterator[None]:
    """Keep other processes out: two that append to one file would spoil it."""
    from storage.sources.kaggle.errors import KaggleError

    with (folder / "lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            raise KaggleError(f"{competition_id}: another process is downloading it; wait for that one") from error
        yield


def _unsteady(competition_id: str) -> Exception:
    from storage.sources.kaggle.errors import Unreachable

    return Unreachable(f"{competition_id}: Kaggle serves another archive each time; try again later")
