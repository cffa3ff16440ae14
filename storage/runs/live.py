"""The log of a run in progress, in pieces in the store, so that `mlebench logs -f` can follow it from other machines.

The host of the run uploads what was added to the log every few seconds. An object of a bucket cannot be appended to, so
the last piece is written again until it is full. The pieces lie outside of the run's folder, are not part of the run,
and are removed when its files are stored.
"""

from __future__ import annotations

import contextlib
import logging
import re
import threading
import time
from collections.abc import Iterator
from pathlib import Path

from competitions.preparing.archives.listing import files_below
from storage.runs.folders import RunFolder
from storage.store import Store

PIECE_BYTES = 256 * 1024
MAX_LOG_BYTES = 64 << 20
"""Only as many bytes of a log can be followed from other machines. The whole log is stored when the run has ended."""
_FIRST_SECONDS = 60.0
_FIRST_INTERVAL_SECONDS, _INTERVAL_SECONDS = 3.0, 10.0
"""Between uploads, in the first minute and later."""
_NAME = re.compile(r"\d{4}-\d{12}")  # number of the try, offset in its log
_logger = logging.getLogger("mlebench.storage")


def pieces_url(folder: RunFolder) -> str:
    """URL of the folder with the pieces of a run's log."""
    return folder.store.url("live", folder.run_group, folder.competition_id, folder.seed)


def remove_pieces(folder: RunFolder) -> None:
    """Remove the pieces of a run whose log is stored. Errors are ignored, because they must not end a run."""
    with contextlib.suppress(Exception):
        folder.store.remove(pieces_url(folder))


@contextlib.contextmanager
def uploaded(folder: RunFolder, log: Path, number: int) -> Iterator[None]:
    """Upload what is added to a log during the block, in a thread of its own.

    Args:
        folder: The run.
        log: Its log on this machine, which may not exist yet.
        number: The number of the try; pieces of a later try follow those of earlier ones.
    """
    ended = threading.Event()
    thread = threading.Thread(target=_upload, args=(folder, log, number, ended), name=f"log {folder.name}", daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()  # not waited for: what is missing is in the log that is stored next


def _upload(folder: RunFolder, log: Path, number: int, ended: threading.Event) -> None:
    begun, start, written = time.monotonic(), 0, 0
    while not ended.wait(_FIRST_INTERVAL_SECONDS if time.monotonic() - begun < _FIRST_SECONDS else _INTERVAL_SECONDS):
        try:
            while log.stat().st_size > written and start < MAX_LOG_BYTES and not ended.is_set():
                with log.open("rb") as file:
                    file.seek(start)
                    piece = file.read(PIECE_BYTES)
                folder.store.write(f"{pieces_url(folder)}/{number:04}-{start:012}", piece)
                written = start + len(piece)
                if len(piece) < PIECE_BYTES:
                    break
                start = written
        except FileNotFoundError:
            continue  # the agent has not begun
        except Exception as error:  # the store may be unavailable; the run continues
            _logger.debug("the log of %s was not uploaded: %s", folder.name, error)


class LiveReader:
    """Reads the pieces of a run's log one after the other, as far as they exist."""

    def __init__(self, folder: RunFolder) -> None:
        """Begin at the first piece of the first try that exists."""
        self._store: Store = folder.store
        self._url = pieces_url(folder)
        self._read: dict[str, int] = {}

    @property
    def of_last_try(self) -> int:
        """The number of bytes of the log of the last try that were read."""
        last_try = max((name.partition("-")[0] for name in self._read), default="")
        return sum(count for name, count in self._read.items() if name.partition("-")[0] == last_try)

    def more(self) -> bytes:
        """What was added since the last call. Raises the errors of the file system."""
        added = []
        top = self._store.top
        for name, size in sorted(files_below(top.fs, top.path(self._store.relative(self._url)))):
            read_bytes = self._read.get(name, 0)
            if size > read_bytes and _NAME.fullmatch(name):  # not one that is being written
                with contextlib.suppress(FileNotFoundError):  # the run has just ended
                    content = self._store.read(f"{self._url}/{name}")[read_bytes:]
                    self._read[name] = read_bytes + len(content)
                    added.append(content)
        return b"".join(added)
