"""The tries of a run: when and where its agent was started, and why a try was lost.

They are in the run's folder in the store while the run has no record, so that the next try, on any host, knows the
earlier ones.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime

from common import plain_json
from common.jsonlines import parse
from common.processes import boot_id
from storage.store import Store

FILE = "tries.jsonl"
MAX_TRIES = 3
"""A run that was lost so often without an end may be what ends its machine."""
HANDED_OVER = "handed over: its job was about to end"
"""Why a try ended that its host has ended in time for another one. It does not count for `MAX_TRIES`."""


@dataclass(frozen=True)
class Try:
    """One start of a run's agent, from scratch or from a checkpoint."""

    id: str
    key: str
    """Content key of the run."""
    host: str
    boot: str
    """The host between two boots (`common.processes.boot_id`)."""
    began_at: str
    resumed_at: float | None = None
    """From a checkpoint after so many seconds; None if it was begun from scratch."""
    lost: str | None = None
    """Why it has no end; None for the last try, and if that was not noticed."""


class Tries:
    """The tries of the run whose folder in the store has the URL `folder`. The holder of the run's lease writes."""

    def __init__(self, store: Store, folder: str) -> None:
        self._store, self._url = store, f"{folder}/{FILE}"

    def read(self, key: str | None = None) -> list[Try]:
        """The tries, oldest first: all, or those with a content key."""
        try:
            content = self._store.read(self._url)
        except FileNotFoundError:
            return []
        return [start for start in (Try(**line) for line in parse(content)) if key in (None, start.key)]

    def begin(self, id: str, key: str, host: str, resumed_at: float | None = None) -> int:
        """Add a try with a key, and remove those with other keys. Returns its number, from 1."""
        earlier_tries = self.read(key)
        if earlier_tries and earlier_tries[-1].lost is None:
            earlier_tries[-1] = replace(earlier_tries[-1], lost=_why_gone(earlier_tries[-1], host))
        now = datetime.now(UTC).isoformat(timespec="seconds")
        self._write([*earlier_tries, Try(id, key, host, boot_id(), now, resumed_at)])
        return len(earlier_tries) + 1

    def lose_last(self, why: str) -> list[Try]:
        """Record why the last try was lost. Returns all tries with its key."""
        tries = self.read()
        lost = [*tries[:-1], replace(tries[-1], lost=why)] if tries else []
        self._write(lost)
        return lost

    def drop_last(self) -> None:
        """Remove the last try, which was not started, or was cancelled."""
        self._write(self.read()[:-1])

    def superseded(self, id: str, finished: bool = False) -> bool:
        """Whether there is a later try than this one, or the try is unknown and the run is `finished`.

        In the second case, an earlier process has stored the record after all.
        """
        ids = [start.id for start in self.read()]
        return id in ids[:-1] or (finished and id not in ids)

    def content(self) -> bytes:
        """The content of the file; empty if there was at most one try."""
        tries = self.read()
        return _lines(tries) if len(tries) > 1 else b""

    def _write(self, tries: list[Try]) -> None:
        if not tries:
            self._store.remove(self._url)
            return
        self._store.write(self._url, _lines(tries))


def _lines(tries: list[Try]) -> bytes:
    return b"".join(plain_json.dumps(asdict(start)).encode() + b"\n" for start in tries)


def _why_gone(last_try: Try, host: str) -> str:
    """The reason for which a try did not end, as far as the host of the next try knows it."""
    if last_try.host != host:
        return f"host {last_try.host} fell silent"
    return "the host was restarted" if last_try.boot != boot_id() else "nothing was left of it"
