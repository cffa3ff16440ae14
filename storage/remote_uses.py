"""Uses of data in an object store: one small object per user, which is written repeatedly while the user lives.

    <uses>/<id>.json    the user's process, and the number of seconds for which the use counts after it was written

The age of an object is measured with the clock of the store: the clocks of the machines need not agree, and may be set.
The use of a process on this machine that has ended counts no longer, except for a run that continues without it.
"""

from __future__ import annotations

import contextlib
import threading
import time
import uuid
from collections.abc import Iterator
from typing import Any

from common.processes import alive, identity
from storage.store import Store
from storage.uses import Continuing

RENEWAL_SECONDS = 600.0
"""Seconds between two writes of an object."""
LIFETIME_SECONDS = 3600.0
"""A use counts for as many seconds after it was written. The store may be unavailable for most of that time."""
MAX_JOIN_SECONDS = 30.0  # to wait for a write that hangs


@contextlib.contextmanager
def use(
    store: Store, folder: str, continuing: Continuing | None = None, beat: float = RENEWAL_SECONDS
) -> Iterator[None]:
    """Count as a user in the folder at the URL `folder` during the block; `continuing` counts without this process.

    Raises the store's error if the use cannot be recorded. Errors of renewals are ignored: a use lasts for several.
    """
    url = f"{folder}/{uuid.uuid4().hex}.json"
    continuing_until = time.monotonic() + continuing.seconds if continuing else 0.0
    ended = threading.Event()

    def record() -> None:
        seconds_left = continuing_until - time.monotonic()
        seconds = max(LIFETIME_SECONDS, seconds_left)
        store.write_json(url, {"holder": identity(), "seconds": seconds, "continuing": max(0.0, seconds_left)})

    def keep() -> None:
        while not ended.wait(beat):
            with contextlib.suppress(Exception):
                record()

    record()
    thread = threading.Thread(target=keep, name=f"use {folder}", daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join(MAX_JOIN_SECONDS)
        with contextlib.suppress(Exception):  # a use that is not removed expires
            store.remove(url)


def in_use(store: Store, folder: str) -> bool:
    """Whether anybody uses the data. Objects of users that are gone are removed."""
    urls = store.glob(f"{store.relative(folder)}/*.json")
    if not urls:
        return False
    now = _now(store)
    living = [url for url in urls if _lives(store, url, now)]
    return bool(living)


def _lives(store: Store, url: str, now: float) -> bool:
    try:
        record = store.read_json(url)
        written = _written(store, url)
    except FileNotFoundError:  # it ended meanwhile
        return False
    except ValueError:  # another program wrote the file, so it is not a use
        return False
    if record is None:
        return False
    ended = alive(record.get("holder")) is False
    if now - written < float(record.get("continuing" if ended else "seconds") or 0):
        return True
    with contextlib.suppress(Exception):
        store.remove(url)
    return False


def _now(store: Store) -> float:
    """The time by the clock of the store, as a Unix time."""
    probe = store.url("locks", f"clock-{uuid.uuid4().hex}.json")
    store.write_json(probe, {})
    try:
        return _written(store, probe)
    finally:
        store.remove(probe)


def _written(store: Store, url: str) -> float:
    try:
        written: Any = store.top.fs.modified(store.top.path(store.relative(url)))
    except NotImplementedError:  # without times of objects, a use ends only with its process
        return 0.0
    return float(written.timestamp())
