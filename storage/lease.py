"""Leases in the store, which ensure that only one of several processes, on any machines, does a piece of work.

A lease is a sequence of generations, `locks/<name>/<generation>.json`. The process that creates the next generation
holds the lease. Creation is exclusive (`storage.exclusive`), so a generation has one holder. The holder rewrites its
file every few seconds (a heartbeat) and finally marks it as released. The next generation may be created when the
newest one is released or its holder is dead. The death of a process on this machine is detected immediately; otherwise,
also if its process exists but is stopped or cannot reach the store, a holder is considered dead when the file has not
changed for a while. The waiting process measures this time, so clocks do not have to agree, and time in which it cannot
reach the store itself does not count. A holder that was wrongly considered dead finds a newer generation and raises
`LeaseLost` before it publishes anything. The two newest generations are kept after their release: a process that was
slow between reading and creating may create a generation that was held and removed long ago, finds a newer one when it
looks again, and withdraws.
"""

from __future__ import annotations

import contextlib
import socket
import threading
import time
import uuid
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from common import plain_json
from common.causes import cause_of
from common.errors import UserError
from common.processes import alive, identity
from storage.dataset import Dataset
from storage.exclusive import create
from storage.remote import describe_error
from storage.store import Store, fsspec_at

HEARTBEAT_SECONDS = 5.0
BEATS_BETWEEN_CHECKS = 12  # whether another process has taken over
STALE_SECONDS = 60.0  # without a heartbeat, after which a holder is considered dead, even if its process exists
BEAT_TIMEOUT_SECONDS = 10.0  # for writing a heartbeat
MAX_ABSENCE_SECONDS = 3600.0  # for which a waiting process waits for a store that does not answer
MAX_RELEASE_ATTEMPTS = 3

# Global, because it states what this process holds: nonce of a generation -> thread. A generation of this process that
# is not here was created by a request whose answer was lost, or was not released because the store was unavailable.
_held: dict[str, int] = {}


def prepare_lease(dataset: Dataset) -> str:
    """Name of the lease for preparing a dataset."""
    return f"prepare/{dataset.home}/{dataset.competition_id}"


def download_lease(competition_id: str) -> str:
    """Name of the lease for downloading a competition's archive."""
    return f"download/{competition_id}"


def run_lease(run_group: str, competition_id: str, seed: int) -> str:
    """Name of the lease for making a run and writing its record."""
    return f"run/{run_group}/{competition_id}/{seed}"


class LeaseLost(UserError):
    """Another process took over the work, because this one did not send a heartbeat for too long."""


def held(store: Store, name: str) -> bool:
    """Whether a process holds the lease, as far as is known here: a holder on another machine may have died."""
    record = _read(store, name, max(_generations(store, name), default=0))
    return bool(record) and not record.get("released") and alive(record.get("holder")) is not False


class Lease:
    """A lease held by this process. Call `require_held` before publishing a result."""

    def __init__(self, store: Store, name: str, generation: int, record: dict[str, Any]) -> None:
        self.generation = generation
        """The number of times that the lease was taken, including this one."""
        self.contested = bool(record.get("contested"))
        """Whether an earlier holder may still be running: it was considered dead because of its silence."""
        self._store, self._name, self._record = store, name, record
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._beat, name=f"lease {name}", daemon=True)
        self._confirmed = time.monotonic()
        self._on_lost: Callable[[], object] = lambda: None
        self.lost = False
        """Whether another process has taken over, as far as this one has noticed."""

    def require_held(self) -> None:
        """Raise `LeaseLost` if another process has taken over."""
        if time.monotonic() - self._confirmed > STALE_SECONDS / 2:  # others may be about to take over
            self._write_beat()
        self.lost = self.lost or max(_generations(self._store, self._name), default=0) != self.generation
        if self.lost:
            raise LeaseLost(f"{self._name}: another process took over; run the same command again to see its result")

    @contextlib.contextmanager
    def ending(self, work: Callable[[], object]) -> Iterator[None]:
        """Call `work` in a thread of its own if another process takes over: the block's result cannot be used then."""
        self._on_lost = work
        try:
            yield
        finally:
            self._on_lost = lambda: None

    def _beat(self) -> None:
        beats, doubtful = 0, False
        while not self._ended.wait(HEARTBEAT_SECONDS):
            beats += 1
            # Others take over after a silence. A process on a suspended machine has not noticed its own silence.
            silent = time.monotonic() - self._confirmed > STALE_SECONDS / 2
            doubtful = doubtful or silent or beats % BEATS_BETWEEN_CHECKS == 0
            with contextlib.suppress(Exception):  # the work itself will report an unreachable store
                self._write_beat()
                if doubtful:
                    self.require_held()
                    doubtful = False
            if self.lost:
                self._on_lost()
                return

    def _write_beat(self) -> None:
        now = time.monotonic()
        self._write({**self._record, "beat": uuid.uuid4().hex})
        self._confirmed = now

    def _write(self, record: dict[str, Any]) -> None:
        """Write the record with short timeouts, so that a request that hangs does not cost the lease."""
        url, content = _url(self._store, self._name, self.generation), Store.json_bytes(record)
        if self._store.top.local:
            self._store.write(url, content)
        else:
            _write_quickly(url, content)

    def start(self) -> None:
        """Start sending heartbeats."""
        self._thread.start()

    def release(self) -> None:
        """Release the lease. If the store cannot be reached, other processes wait until the lease is stale."""
        self._ended.set()
        if self._thread.is_alive():
            self._thread.join()
        for _ in range(MAX_RELEASE_ATTEMPTS):
            with contextlib.suppress(Exception):
                self._write({**self._record, "released": True})
                return


@contextlib.contextmanager
def lease(
    store: Store,
    name: str,
    *,
    on_wait: Callable[[str], None] = lambda _: None,
    wait: bool = True,
    stale_after: float = STALE_SECONDS,
) -> Iterator[Lease | None]:
    """Hold the lease `name` for the block. Waits for another holder, which is passed to `on_wait` again and again.

    With `wait=False`, yields None if another process or thread holds it.

    Raises:
        RuntimeError: this thread holds the lease already, and would wait for itself.
    """
    nonce = uuid.uuid4().hex
    mine = {"holder": identity(), "host": socket.gethostname(), "nonce": nonce, "beat": nonce}
    _held[nonce] = threading.get_ident()
    try:
        watch = _Watch(stale_after)
        while (generation := _take(store, name, mine, watch)) is None:
            if not wait:
                yield None
                return
            if _held.get(watch.nonce) == threading.get_ident():
                raise RuntimeError(f"this thread holds the lease {name} already")
            on_wait(watch.reason())
            watch.pause()
        held_lease = Lease(store, name, generation, mine)
        try:
            held_lease.start()
            yield held_lease
        finally:
            held_lease.release()
    finally:
        del _held[nonce]


def _take(store: Store, name: str, mine: dict[str, Any], watch: _Watch) -> int | None:
    """The generation that this process has created; None if the lease is held."""
    while True:
        try:
            generations = _generations(store, name)
            newest = max(generations, default=0)
            record = _read(store, name, newest) if newest else None
        except Exception as error:
            watch.store_is_away(error)
            return None
        if not (record is None or record.get("released") or watch.dead(newest, record)):
            return None
        mine["contested"] = bool(record and (record.get("contested") or not (record.get("released") or watch.ended)))
        if not _create(store, name, newest + 1, mine):
            continue
        generations = _generations(store, name)
        if max(generations, default=0) == newest + 1:
            _remove(store, name, (generation for generation in generations if generation < newest))
            return newest + 1
        _remove(store, name, [newest + 1])


class _Watch:
    """What a waiting process knows about the holder, to detect its death."""

    def __init__(self, stale_after: float) -> None:
        self._stale_after, self._seen, self._since = stale_after, "", time.monotonic()
        self._began, self._answered = time.monotonic(), time.monotonic()
        self._pause, self._who = min(0.2, stale_after / 4), ""
        self._store_away = False
        self.nonce, self.ended = "", False

    def dead(self, generation: int, record: dict[str, Any]) -> bool:
        """Whether the holder of the newest generation is dead, as far as can be known."""
        now = time.monotonic()
        self._answered, self._store_away = now, False
        holder, self.nonce = record.get("holder") or {}, str(record.get("nonce"))
        self._who = f"{record.get('host', 'unknown')}, process {holder.get('pid', 'unknown')}"
        self.ended = alive(holder) is False or (holder == identity() and self.nonce not in _held)
        if self.ended:
            return True
        heartbeat = f"{generation} {record.get('beat')}"
        if heartbeat != self._seen:
            self._seen, self._since = heartbeat, now
        return now - self._since > self._stale_after

    def store_is_away(self, error: Exception) -> None:
        """Raise an error of the store, unless it passes and this process is waiting: it does not mean a dead holder."""
        away = time.monotonic() - self._answered
        if not self._who or not cause_of(error).passes or away > MAX_ABSENCE_SECONDS:
            raise error
        self._seen, self._store_away = "", True

    def reason(self) -> str:
        """What is waited for, for the user."""
        minutes = int((time.monotonic() - self._began) / 60)
        duration = f" for {minutes} min" if minutes else ""
        if self._store_away:
            return f"for the store, which does not answer{duration and ','}{duration}"
        return f"for another process ({self._who}){duration and ','}{duration}"

    def pause(self) -> None:
        """Wait a little, and longer each time, because each check takes two requests."""
        time.sleep(self._pause)
        self._pause = min(self._pause * 1.3, HEARTBEAT_SECONDS, self._stale_after / 4)


def _write_quickly(url: str, content: bytes) -> None:
    from fsspec.asyn import sync

    fs, path = fsspec_at(url)
    if fs.async_impl:  # with a timeout, because clients wait forever for the answer to `Expect: 100-continue`
        sync(fs.loop, fs._pipe_file, path, content, timeout=BEAT_TIMEOUT_SECONDS)
    else:
        fs.pipe_file(path, content)


def _url(store: Store, name: str, generation: int) -> str:
    return store.url("locks", name, f"{generation:08d}.json")


def _path(store: Store, name: str, generation: int) -> str:
    return store.top.path(store.relative(_url(store, name, generation)))


def _generations(store: Store, name: str) -> list[int]:
    """The generations in the store; one listing."""
    try:
        paths = store.top.fs.ls(store.top.path(f"locks/{name}"), detail=False)
    except FileNotFoundError:
        return []
    stems = (str(path).rsplit("/", 1)[-1].removesuffix(".json") for path in paths)
    return [int(stem) for stem in stems if stem.isdecimal()]


def _read(store: Store, name: str, generation: int) -> dict[str, Any]:
    """The record of a generation; empty, with an unknown holder, if it was just removed or is incomplete."""
    try:
        record = store.read_json(_url(store, name, generation))
    except ValueError:
        return {}
    return record if isinstance(record, dict) else {}


def _create(store: Store, name: str, generation: int, record: dict[str, Any]) -> bool:
    """Create a generation. Returns False if it exists already."""
    try:
        return create(store.top.fs, _path(store, name, generation), plain_json.dumps(record).encode(), store.top.local)
    except Exception as error:
        if cause_of(error).passes:
            raise
        raise UserError(f"store {store.root}: cannot create a lease: {describe_error(error)}") from error


def _remove(store: Store, name: str, generations: Iterable[int]) -> None:
    for generation in generations:
        with contextlib.suppress(FileNotFoundError):
            store.top.fs.rm_file(_path(store, name, generation))
