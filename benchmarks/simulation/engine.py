"""A discrete-event engine: processes that wait for time, for slots, for each other, and share bandwidth fairly.

A process is a generator that yields what it waits for. simpy offers time, slots and processes, but not shared
bandwidth: work whose speed changes whenever other work on the same link, disk or CPU begins or ends.
"""

from __future__ import annotations

import heapq
import itertools
import math
from collections import deque
from collections.abc import Callable, Generator, Iterable
from dataclasses import dataclass
from typing import TypeAlias

# Work counts as done if it would take less time than this: in seconds, plus a share of the clock, which is the
# resolution of its floating-point number.
_MOMENT, _TICK = 1e-6, 1e-14


@dataclass(frozen=True)
class Sleep:
    """Wait for `seconds` of simulated time."""

    seconds: float


@dataclass(frozen=True)
class Take:
    """Wait for one of the slots, first come first served. Return it with `slots.release()`."""

    slots: Slots


@dataclass(frozen=True)
class Work:
    """Wait until `amount` (bytes, CPU seconds) has gone through `pipe`, at no more than `limit` a second."""

    pipe: Pipe
    amount: float
    limit: float = math.inf


@dataclass(frozen=True)
class Join:
    """Wait until all these processes have ended."""

    processes: tuple[Process, ...]


Request: TypeAlias = Sleep | Take | Work | Join
Steps: TypeAlias = Generator[Request, None, None]


class Process:
    """A running generator. `ended` is the time at which it ended, or None while it runs."""

    def __init__(self, steps: Steps) -> None:
        self.steps = steps
        self.ended: float | None = None
        self.waiting: list[Callable[[], None]] = []


class Engine:
    """The clock and the queue of events. `now` is in seconds."""

    def __init__(self) -> None:
        self.now = 0.0
        self._due: list[tuple[float, int, Callable[[], None]]] = []
        self._numbers = itertools.count()

    def start(self, steps: Steps) -> Process:
        """Start a process now."""
        process = Process(steps)
        self.after(0.0, lambda: self._advance(process))
        return process

    def all(self, *parts: Steps) -> Join:
        """Start several processes now; returns a request that waits for all of them."""
        return Join(tuple(map(self.start, parts)))

    def after(self, seconds: float, act: Callable[[], None]) -> None:
        """Call `act` after `seconds`. Simultaneous calls happen in the order in which they were scheduled."""
        heapq.heappush(self._due, (self.now + seconds, next(self._numbers), act))

    def run(self) -> float:
        """Run until no event is left; returns the time of the last one."""
        while self._due:
            self.now, _, act = heapq.heappop(self._due)
            act()
        return self.now

    def _advance(self, process: Process) -> None:
        try:
            request = next(process.steps)
        except StopIteration:
            process.ended = self.now
            for go_on in process.waiting:
                self.after(0.0, go_on)
            return
        self._wait(request, lambda: self._advance(process))

    def _wait(self, request: Request, go_on: Callable[[], None]) -> None:
        match request:
            case Sleep(seconds):
                self.after(seconds, go_on)
            case Take(slots):
                slots.take(lambda: self.after(0.0, go_on))
            case Work(pipe, amount, limit):
                pipe.add(amount, limit, go_on)
            case Join(processes):
                self._join(processes, go_on)

    def _join(self, processes: Iterable[Process], go_on: Callable[[], None]) -> None:
        left = [process for process in processes if process.ended is None]
        if not left:
            self.after(0.0, go_on)
        count = len(left)

        def one_ended() -> None:
            nonlocal count
            count -= 1
            if not count:
                go_on()

        for process in left:
            process.waiting.append(one_ended)


class Slots:
    """A limit on concurrency; first come, first served."""

    def __init__(self, count: int) -> None:
        self.free = count
        self._queue: deque[Callable[[], None]] = deque()

    def take(self, go_on: Callable[[], None]) -> None:
        """Call `go_on` as soon as a slot is free."""
        if self.free:
            self.free -= 1
            go_on()
        else:
            self._queue.append(go_on)

    def release(self) -> None:
        """Return a slot; the longest waiting process gets it."""
        if self._queue:
            self._queue.popleft()()
        else:
            self.free += 1


@dataclass
class _Job:
    left: float
    limit: float
    go_on: Callable[[], None]
    rate: float = 0.0


class Pipe:
    """A capacity (bytes or CPU seconds per second) with max-min fair sharing: no job gets more than it can use."""

    def __init__(self, engine: Engine, capacity: float) -> None:
        self.engine, self.capacity = engine, capacity
        self._jobs: list[_Job] = []
        self._since = 0.0
        self._version = 0

    def add(self, amount: float, limit: float, go_on: Callable[[], None]) -> None:
        """Call `go_on` when `amount` has been processed."""
        if amount <= 0 or math.isinf(min(self.capacity, limit)):
            self.engine.after(0.0, go_on)
            return
        self._progress()
        self._jobs.append(_Job(amount, limit, go_on))
        self._share()

    def _progress(self) -> None:
        """Subtract the amounts processed since the last change, and continue the jobs that are done."""
        passed, self._since = self.engine.now - self._since, self.engine.now
        for job in self._jobs:
            job.left -= job.rate * passed
        moment = _MOMENT + self.engine.now * _TICK
        done = [job for job in self._jobs if job.left <= job.rate * moment]
        self._jobs = [job for job in self._jobs if job.left > job.rate * moment]
        for job in done:
            self.engine.after(0.0, job.go_on)

    def _share(self) -> None:
        """Divide the capacity again, lowest limits first; capacity that a job cannot use goes to the others."""
        left = self.capacity
        for number, job in enumerate(sorted(self._jobs, key=lambda each: each.limit)):
            job.rate = min(job.limit, left / (len(self._jobs) - number))
            left -= job.rate
        self._version += 1
        if self._jobs:
            version = self._version
            soonest = min(job.left / job.rate for job in self._jobs)
            self.engine.after(soonest, lambda: self._changed(version))

    def _changed(self, version: int) -> None:
        if version == self._version:  # otherwise the capacity was divided again in the meantime
            self._progress()
            self._share()
