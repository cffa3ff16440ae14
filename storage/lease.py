"""Leases in the store, which ensure that only one of several processes, on any machines, does a piece of work.

A lease is a sequence of generations, `locks/<name>/<generation>.json`. The process that creates the next generation
holds the lease. Creation is exclusive (a hard link on local disks, `If-None-Match: *` on S3), so a generation has one
holder. The holder rewrites its file every few seconds (a heartbeat) and finally marks it as released. The next
generation may be created when the newest one is released or its holder is dead. The death of a process on this machine
is detected immediately; otherwise a holder is considered dead when the file has not changed for a while. The waiting
process measures this time, so clocks do not have to agree. A holder that was wrongly considered dead finds a newer
generation and raises `LeaseLost` before it publishes anything. The two newest generations are kept after their release:
a process that was slow between reading and creating may create a generation that was held and removed long ago, finds a
newer one when it looks again, and withdraws.
"""

from __future__ import annotations

import contextlib
import json
import os
import socket
import threading
import time
import uuid
from collections.abc import Callable, Container, Iterator
from pathlib import Path
from typing import Any

from common.errors import UserError
from common.processes import alive, identity
from storage.dataset import Dataset
from storage.remote import describe_error, is_transient
from storage.store import Store

HEARTBEAT = 5.0  # seconds between heartbeats
STALE_AFTER = 60.0  # seconds without a heartbeat after which a holder on another machine is considered dead


def prepare_lease(dataset: Dataset) -> str:
    """Name of the lease for preparing a dataset."""
    return f"prepare/{dataset.edition}/{dataset.competition_id}"


def download_lease(competition_id: str) -> str:
    """Name of the lease for downloading a competition's archive."""
    return f"download/{competition_id}"


class LeaseLost(UserError):
    """Another process took over the work, because this one did not send a heartbeat for too long."""


class Lease:
    """A lease held by this process. Call `require_held` before publishing a result."""

    def __init__(self, store: Store, name: str, generation: int, record: dict[str, Any]) -> None:
        self._store, self._name, self._generation, self._record = store, name, generation, record
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._beat, name=f"lease {name}", daemon=True)

    def require_held(self) -> None:
        """Raise `LeaseLost` if another process has taken over."""
        if _newest(self._store, self._name)[0] != self._generation:
            raise LeaseLost(f"{self._name}: another process took over; run the same command again to see its result")

    def _beat(self) -> None:
        while not self._ended.wait(HEARTBEAT):
            with contextlib.suppress(Exception):  # the work itself will report an unreachable store
                self._write({**self._record, "beat": uuid.uuid4().hex})

    def _write(self, record: dict[str, Any]) -> None:
        self._store.write_json(_url(self._store, self._name, self._generation), record)

    def start(self) -> None:
        """Start sending heartbeats."""
        self._thread.start()

    def release(self) -> None:
        """Release the lease. If the store cannot be reached, other processes wait until the lease is stale."""
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
    stale_after: float = STALE_AFTER,
) -> Iterator[Lease | None]:
    """Hold the lease `name` for the block. Waits for another holder, which is passed to `on_wait`.

    With `wait=False`, yields None if another process holds it.
    """
    watch = _Watch(stale_after)
    pause = threading.Event()
    while True:
        generation, record = _newest(store, name)
        if record is None or record.get("released") or watch.dead(generation, record):
            mine = {"holder": identity(), "host": socket.gethostname(), "beat": uuid.uuid4().hex}
            if not _create(store, name, generation + 1, mine):
                continue
            if _newest(store, name)[0] != generation + 1:
                _remove(store, name, {generation + 1})
                continue
            _remove(store, name, range(generation))
            break
        if not wait:
            yield None
            return
        on_wait(f"for another process ({record.get('host', 'unknown')})")
        pause.wait(min(1.0, stale_after / 4))
    held = Lease(store, name, generation + 1, mine)
    held.start()
    try:
        yield held
    finally:
        held.release()


class _Watch:
    """Detects that the holder of a lease is dead."""

    def __init__(self, stale_after: float) -> None:
        self._stale_after, self._seen, self._since = stale_after, "", time.monotonic()

    def dead(self, generation: int, record: dict[str, Any]) -> bool:
        known = alive(record.get("holder"))
        if known is not None:
            return not known
        seen = f"{generation} {record.get('beat')}"
        if seen != self._seen:
            self._seen, self._since = seen, time.monotonic()
        return time.monotonic() - self._since > self._stale_after


def _url(store: Store, name: str, generation: int) -> str:
    return store.url("locks", name, f"{generation:08d}.json")


def _newest(store: Store, name: str) -> tuple[int, dict[str, Any] | None]:
    """(newest generation, its record), or (0, None) if there has never been one."""
    found = store.glob(f"locks/{name}/*.json")
    if not found:
        return 0, None
    generation = int(found[-1].rsplit("/", 1)[1].removesuffix(".json"))
    try:
        return generation, store.read_json(found[-1]) or {}
    except ValueError:
        return generation, {}


def _create(store: Store, name: str, generation: int, record: dict[str, Any]) -> bool:
    """Create a generation. Returns False if it exists already."""
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
        # Stores raise different errors for existing files, and a retried request may find its own file.
        written = store.read_json(_url(store, name, generation))
        if written is None:
            if is_transient(error):
                raise
            raise UserError(f"store {store.root}: cannot create a lease: {describe_error(error)}") from error
        return bool(written == record)
    return True


def _remove(store: Store, name: str, generations: Container[int]) -> None:
    for url in store.glob(f"locks/{name}/*.json"):
        if int(url.rsplit("/", 1)[1].removesuffix(".json")) in generations:
            with contextlib.suppress(FileNotFoundError):
                store.remove(url)
