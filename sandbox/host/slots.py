"""The slots and GPUs of a host, which all flow runs of a user on it share.

    lock                 held for a moment by a process that reads or takes slots
    slots/<n>.json       who has slot n (`Holder`); locked while the slot is taken
    queue/<number>.json  who waits (`Claim`); locked by the waiting process, which touches it at every poll

A slot is taken while a process has its file locked. That is the orchestrator and, with the process backend, also the
run's supervisor, so a slot stays taken when the orchestrator is killed and its agent lives on, and is free when both
are dead. A container cannot hold a lock: a file that is not locked counts as taken while the engine has the container
of its run.
"""

from __future__ import annotations

import contextlib
import json
import os
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Protocol

from common import plain_json
from common.locks import acquire, locked, release
from common.processes import alive, identity
from sandbox.backend import Allocation
from sandbox.host.gpus import check_count, installed

POLL_SECONDS = 0.25
ABSENT_SECONDS = 60.0
"""A process that has not polled for so long, such as a stopped one, does not hold back those that wait behind it."""
_MAX_HOLDERS_NAMED = 3


class Backends(Protocol):
    """The backends' knowledge of runs; see `sandbox.backends`."""

    def is_running(self, name: str, workdir: Path) -> bool:
        """Whether a run that does not hold the lock of its slot is running or being started. True if unknown."""
        ...

    def gpus_in_use(self) -> set[str]:
        """GPUs that runs have, also of other users."""
        ...


@dataclass(frozen=True)
class Claim:
    """A run's claim to a slot and GPUs."""

    run_id: str
    workdir: str
    backend: str
    gpus: int = 0
    seconds: float = 0.0
    """The longest time for which the run may use its slot if its orchestrator is killed."""
    labels: dict[str, str] = field(default_factory=dict)
    """Further facts that identify the run to people who inspect the host."""


@dataclass(frozen=True)
class Holder:
    """The run that has a slot."""

    claim: Claim
    devices: tuple[str, ...]
    since: str
    process: dict[str, Any]
    """The orchestrator (`common.processes.identity`), which may be dead."""

    @property
    def waited_for(self) -> bool:
        """Whether the orchestrator is alive, or may be: it is not known of one in another container."""
        return alive(self.process) is not False

    def __str__(self) -> str:
        gpus = f", GPUs {', '.join(self.devices)}" if self.devices else ""
        return f"{self.claim.run_id} ({self.claim.backend}, since {self.since[:16].replace('T', ' ')} UTC{gpus})"


_UNKNOWN = Holder(Claim("an unknown run", "", "process"), (), "", {})


def granted(waiting: Sequence[int], slots: int, gpus: int) -> list[bool]:
    """Whether each waiting run gets a slot now: first come, first served.

    A run that has to wait for GPUs holds back later ones that want GPUs, too, but not those that need none: when the
    GPUs become free, a slot becomes free with them, and the run is first.

    Args:
        waiting: number of GPUs that each run asks for, in the order of their arrival.
        slots: number of free slots.
        gpus: number of free GPUs.

    >>> granted([1, 2, 1, 0], slots=3, gpus=2)
    [True, False, False, True]
    """
    grants = []
    for gpus_wanted in waiting:
        if gpus_wanted > gpus:
            gpus = 0
        grants.append(slots > 0 and gpus_wanted <= gpus)
        if grants[-1]:
            slots, gpus = slots - 1, gpus - gpus_wanted
    return grants


class HostSlots:
    """The slots and GPUs of one host. Safe across processes and threads."""

    def __init__(self, folder: Path, backends: Backends, devices: Sequence[str] | None = None) -> None:
        """Use the slots in a folder.

        Args:
            folder: the same for all processes on the host, on a local disk.
            backends: asked only about runs and GPUs that matter.
            devices: ids of the GPUs; by default those that are installed.
        """
        self._folder, self._backends = folder, backends
        self._devices = None if devices is None else list(devices)
        for name in ("slots", "queue"):
            (folder / name).mkdir(parents=True, exist_ok=True)

    @property
    def devices(self) -> list[str]:
        """Ids of the GPUs of the host."""
        if self._devices is None:
            self._devices = installed()
        return self._devices

    @contextlib.contextmanager
    def take(
        self, claim: Claim, limit: int, on_wait: Callable[[str], None] = lambda _: None, *, running: bool = False
    ) -> Iterator[Allocation]:
        """Wait for a slot, and for GPUs if the run wants some, and hold them for the block.

        If the block raises, the run may still be in progress, and then keeps its slot until it ends.

        Args:
            claim: what the run asks for.
            limit: number of slots of the host.
            on_wait: called with the reason of the wait, whenever that has changed.
            running: the run is in progress, and keeps the slot that it has. It does not wait for one if it has none.

        Raises:
            BackendError: the host has fewer GPUs.
        """
        if not running:
            check_count(claim.gpus, self.devices if claim.gpus else ())
        allocation = replace(self._adopt(claim) if running else self._wait(claim, limit, on_wait), slots=limit)
        try:
            yield allocation
        except BaseException:
            if allocation.descriptor is not None:
                os.close(allocation.descriptor)
            raise
        if allocation.descriptor is not None:
            with self._host_locked():
                os.ftruncate(allocation.descriptor, 0)
                release(allocation.descriptor)

    def holders(self) -> list[Holder]:
        """The runs that have a slot now."""
        with self._host_locked():
            return list(self._taken().values())

    def waiting(self) -> list[Claim]:
        """The runs that wait for a slot, in the order of their arrival."""
        with self._host_locked():
            return [claim for _, claim in self._queue()]

    @contextlib.contextmanager
    def _host_locked(self) -> Iterator[None]:
        """Hold the lock of the host."""
        with locked(self._folder / "lock", wait=True):
            yield

    def _wait(self, claim: Claim, limit: int, on_wait: Callable[[str], None]) -> Allocation:
        reported = ""
        with contextlib.ExitStack() as ticket:
            ticket_path: Path | None = None
            while True:
                with self._host_locked():
                    if ticket_path is None or not ticket_path.exists():
                        ticket_path = ticket.enter_context(self._ticket(claim))
                    os.utime(ticket_path)
                    taken_slots = self._taken()
                    free_devices = (
                        [device for device in self.devices if device not in self._busy(taken_slots)]
                        if claim.gpus
                        else []
                    )
                    queue = self._queue()
                    position = [path for path, _ in queue].index(ticket_path)
                    ahead = [earlier.gpus for _, earlier in queue[:position]]
                    if granted([*ahead, claim.gpus], limit - len(taken_slots), len(free_devices))[-1]:
                        ticket.close()  # now, or the next one would count both the ticket and the slot
                        return self._grant(claim, free_devices[: claim.gpus], taken_slots)
                text = _waits_for(
                    claim, limit, taken_slots, len(free_devices), len(self.devices) if claim.gpus else 0, len(ahead)
                )
                if text != reported:
                    on_wait(text)
                    reported = text
                time.sleep(POLL_SECONDS)

    def _adopt(self, claim: Claim) -> Allocation:
        """The slot that a run in progress has; a further one, above the limit if need be, if it has none."""
        with self._host_locked():
            for number, holder in self._taken().items():
                if holder.claim.workdir == claim.workdir:
                    descriptor = acquire(self._slot(number))
                    allocation = Allocation(holder.devices, descriptor)
                    if descriptor is not None:
                        self._write(descriptor, Holder(claim, holder.devices, holder.since, identity()))
                    return allocation
            return self._grant(claim, [], self._taken())

    def _grant(self, claim: Claim, devices: list[str], taken_slots: dict[int, Holder]) -> Allocation:
        number = next(number for number in range(len(taken_slots) + 1) if number not in taken_slots)
        descriptor = acquire(self._slot(number))
        assert descriptor is not None, "a free slot is locked only while the host is"
        now = datetime.now(UTC).isoformat(timespec="seconds")
        try:
            self._write(descriptor, Holder(claim, tuple(devices), now, identity()))
        except BaseException:  # as on a full disk
            os.close(descriptor)
            raise
        return Allocation(tuple(devices), descriptor)

    def _taken(self) -> dict[int, Holder]:
        """The slots that are taken. Called with the lock held, like the other functions below."""
        taken_slots = {}
        for path in (self._folder / "slots").glob("*.json"):
            with locked(path) as lock:
                holder = _read_holder(path)
                if lock is None or (holder is not None and self._continues(holder)):
                    taken_slots[int(path.stem)] = holder or _UNKNOWN
        return taken_slots

    def _continues(self, holder: Holder) -> bool:
        """Whether a run is in progress whose orchestrator is gone and whose slot is not locked."""
        since = datetime.fromisoformat(holder.since)
        over = (datetime.now(UTC) - since).total_seconds() > holder.claim.seconds
        return not over and self._backends.is_running(holder.claim.backend, Path(holder.claim.workdir))

    def _busy(self, taken_slots: dict[int, Holder]) -> set[str]:
        return {device for holder in taken_slots.values() for device in holder.devices} | self._backends.gpus_in_use()

    def _slot(self, number: int) -> Path:
        return self._folder / "slots" / f"{number}.json"

    def _write(self, descriptor: int, holder: Holder) -> None:
        # In place, because the lock is on this file.
        os.ftruncate(descriptor, 0)
        os.pwrite(descriptor, plain_json.dumps(asdict(holder)).encode(), 0)

    @contextlib.contextmanager
    def _ticket(self, claim: Claim) -> Iterator[Path]:
        """A position at the end of the queue for the block. Called with the lock held."""
        numbers = [int(path.stem) for path in (self._folder / "queue").glob("*.json")]
        path = self._folder / "queue" / f"{max(numbers, default=0) + 1:012d}.json"
        with locked(path) as lock:
            assert lock is not None
            os.pwrite(lock, plain_json.dumps(asdict(claim)).encode(), 0)
            try:
                yield path
            finally:
                path.unlink(missing_ok=True)

    def _queue(self) -> list[tuple[Path, Claim]]:
        """The waiting runs, in the order of their arrival; removes the files of dead processes."""
        queue = []
        for path in sorted((self._folder / "queue").glob("*.json")):
            with locked(path) as lock, contextlib.suppress(OSError, ValueError, TypeError):
                if lock is not None:
                    path.unlink()
                elif time.time() - path.stat().st_mtime < ABSENT_SECONDS:
                    queue.append((path, Claim(**json.loads(path.read_text()))))
        return queue


def _read_holder(path: Path) -> Holder | None:
    """The holder of a slot according to its file; None if there is none, or if another version has written it."""
    try:
        record = json.loads(path.read_text())
        return Holder(Claim(**record.pop("claim")), tuple(record.pop("devices")), **record)
    except (OSError, ValueError, TypeError, KeyError):
        return None


def _waits_for(claim: Claim, limit: int, taken_slots: dict[int, Holder], free_gpus: int, gpus: int, ahead: int) -> str:
    """The reason why a run waits, in one line."""
    names = [holder.claim.run_id for holder in taken_slots.values()][:_MAX_HOLDERS_NAMED]
    holder_names = ", ".join(
        [*names, *([f"{len(taken_slots) - len(names)} more"] if len(taken_slots) > len(names) else [])]
    )
    if len(taken_slots) >= limit:
        text = f"for a slot ({len(taken_slots)} of {limit} taken by {holder_names})"
    elif claim.gpus > free_gpus:
        text = f"for {claim.gpus} GPUs ({gpus - free_gpus} of {gpus} taken by {holder_names or 'others'})"
    else:
        text = "for its turn"
    return f"{text}, {ahead} before it" if ahead else text
