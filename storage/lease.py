"""Leases in the store: of several processes that want to do the same work, on whatever machines, one does it.

A lease is a row of generations, `locks/<name>/<generation>.json`. Whoever creates the next generation holds the lease;
creating is exclusive (a hard link on local disks, `If-None-Match: *` on S3), so that two can never hold one generation.
The holder rewrites its file every few seconds and marks it as released in the end. The next generation may be created
when the newest one is released, or its holder is dead: at once if that was a process of this machine, else when the
file has not changed for a while, by the clock of who watches it, so that clocks need not agree. A holder that was
taken for dead finds a newer generation and raises `LeaseLost` before it publishes anything. The newest file stays,
released: were it removed, a slow process could take an old number for a free one.
"""

from __future__ import annotations

import contextlib
import json
import os
import socket
import threading
import time
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from common.errors import UserError
from common.processes import alive, identity
from competitions.editions import Edition
from storage.remote import explain, passes
from storage.store import Store

BEAT = 5.0  # seconds between signs of life
PATIENCE = 60.0  # seconds without one after which a holder elsewhere is taken for dead


def prepare_lease(competition_id: str, edition: Edition) -> str:
    """The lease on preparing one dataset."""
    return f"prepare/{edition}/{competition_id}"


class LeaseLost(UserError):
    """Another process took over the work, because this one gave no sign of life for long."""


class Lease:
    """A lease that is held. `check` raises `LeaseLost` if it is no more; call it before publishing a result."""

    def __init__(self, store: Store, name: str, generation: int, record: dict[str, Any]) -> None:
        self._store, self._name, self._generation, self._record = store, name, generation, record
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._beat, name=f"lease {name}", daemon=True)

    def check(self) -> None:
        """Raises `LeaseLost` if a newer generation exists."""
        if _newest(self._store, self._name)[0] != self._generation:
            raise LeaseLost(f"{self._name}: another process took over; run the same command again to see its result")

    def _beat(self) -> None:
        while not self._ended.wait(BEAT):
            with contextlib.suppress(Exception):  # a store that is away is the work's problem, not that of its lease
                self._write({**self._record, "beat": uuid.uuid4().hex})

    def _write(self, record: dict[str, Any]) -> None:
        self._store.write_json(_url(self._store, self._name, self._generation), record)

    def start(self) -> None:
        """Begin giving signs of life."""
        self._thread.start()

    def release(self) -> None:
        """Let others go on. A store that cannot be reached now lets them wait until the lease is stale."""
        self._ended.set()
        self._thread.join()
        with contextlib.suppress(Exception):
            self._write({**self._record, "released": True})


@contextlib.contextmanager
def lease(
    store: Store,
    name: str,
    *,
    on_wait: Callable[[str], None] = lambda _: None,
    wait: bool = True,
    patience: float = PATIENCE,
) -> Iterator[Lease | None]:
    """Hold the lease `name` for the block; waits for its holder, telling `on_wait` who that is.

    With `wait=False` yields None where somebody else holds it.
    """
    watch = _Watch(patience)
    pause = threading.Event()
    while True:
        generation, record = _newest(store, name)
        if record is None or record.get("released") or watch.dead(generation, record):
            mine = {"holder": identity(), "host": socket.gethostname(), "beat": uuid.uuid4().hex}
            if _create(store, name, generation + 1, mine):
                _forget(store, name, generation)
                break
            continue
        if not wait:
            yield None
            return
        on_wait(f"for another process ({record.get('host', 'unknown')})")
        pause.wait(min(1.0, patience / 4))
    held = Lease(store, name, generation + 1, mine)
    held.start()
    try:
        yield held
    finally:
        held.release()


class _Watch:
    """Tells whether the holder of a lease is dead."""

    def __init__(self, patience: float) -> None:
        self._patience, self._seen, self._since = patience, "", time.monotonic()

    def dead(self, generation: int, record: dict[str, Any]) -> bool:
        known = alive(record.get("holder"))
        if known is not None:
            return not known
        seen = f"{generation} {record.get('beat')}"
        if seen != self._seen:
            self._seen, self._since = seen, time.monotonic()
        return time.monotonic() - self._since > self._patience


def _url(store: Store, name: str, generation: int) -> str:
    return store.url("locks", name, f"{generation:08d}.json")


def _newest(store: Store, name: str) -> tuple[int, dict[str, Any] | None]:
    """(newest generation, its record); (0, None) if there has never been one."""
    found = store.glob(f"locks/{name}/*.json")
    if not found:
        return 0, None
    generation = int(found[-1].rsplit("/", 1)[1].removesuffix(".json"))
    try:
        return generation, store.read_json(found[-1]) or {}
    except ValueError:
        return generation, {}


def _create(store: Store, name: str, generation: int, record: dict[str, Any]) -> bool:
    """Create a generation if it does not exist; False if it does."""
    content = json.dumps(record).encode()
    path = store.top.path(store.relative(_url(store, name, generation)))
    if store.top.local:
        draft = Path(f"{path}.{os.getpid()}.{threading.get_ident()}.draft")
        draft.parent.mkdir(parents=True, exist_ok=True)
        draft.write_bytes(content)
        try:
            os.link(draft, path)
        except FileExistsError:
            return False
        finally:
            draft.unlink()
        return True
    try:
        store.top.fs.pipe_file(path, content, mode="create")
    except FileExistsError:
        return False
    except Exception as error:
        # Stores have errors of their own for "it exists"; and a write that was repeated may have met its first half.
        written = store.read_json(_url(store, name, generation))
        if written is None:
            if passes(error):
                raise
            raise UserError(f"store {store.root}: cannot create a lease: {explain(error)}") from error
        return bool(written == record)
    return True


def _forget(store: Store, name: str, up_to: int) -> None:
    for url in store.glob(f"locks/{name}/*.json"):
        if int(url.rsplit("/", 1)[1].removesuffix(".json")) <= up_to:
            with contextlib.suppress(FileNotFoundError):
                store.remove(url)
