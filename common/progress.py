"""Progress events of work in this process, for listeners such as the live board of a terminal."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from contextvars import ContextVar
from typing import NamedTuple


class Event(NamedTuple):
    """The state of one row of the board, e.g. a competition being prepared or a run of an agent."""

    row: str
    state: str
    detail: str = ""
    done: int = 0
    total: int = 0
    story: bool = False
    """Whether a log of the row keeps it, even if the state is the same as before."""


Listener = Callable[[Event], None]
# In the context rather than global: Prefect's thread pool copies the context of a flow into the threads of its tasks.
_listeners: ContextVar[tuple[Listener, ...]] = ContextVar("listeners", default=())


@contextlib.contextmanager
def listening(listener: Listener) -> Iterator[None]:
    """Call `listener` for every event that the block reports, also from the tasks of flows that it runs.

    >>> with listening(lambda event: print(event.row, event.state)):
    ...     report("digits", "split")
    digits split
    >>> report("digits", "checksum")
    """
    token = _listeners.set((*_listeners.get(), listener))
    try:
        yield
    finally:
        _listeners.reset(token)


class Share(NamedTuple):
    """How much of one limit has been used: of time in seconds, of requests, of tokens, or of US dollars."""

    what: str
    used: float
    limit: float | None = None


Meter = Callable[[], Sequence[Share]]
_meters: ContextVar[dict[str, Meter] | None] = ContextVar("meters", default=None)


@contextlib.contextmanager
def metering() -> Iterator[dict[str, Meter]]:
    """Collect the meters that the work in the block offers, by row. They may be read from any thread.

    >>> with metering() as meters:
    ...     measured_by("digits seed 0", lambda: [Share("requests", 3, 10)])
    ...     meters["digits seed 0"]()
    [Share(what='requests', used=3, limit=10)]
    """
    meters: dict[str, Meter] = {}
    token = _meters.set(meters)
    try:
        yield meters
    finally:
        _meters.reset(token)


def measured_by(row: str, meter: Meter) -> None:
    """Offer a function that measures what the work of a row has used so far, for those who show it."""
    meters = _meters.get()
    if meters is not None:
        meters[row] = meter


def report(row: str, state: str, detail: str = "", done: int = 0, total: int = 0, story: bool = False) -> None:
    """Report the state of a row to the listeners; see `Event`."""
    for listener in _listeners.get():
        listener(Event(row, state, detail, done, total, story))
