"""Progress events of work in this process, for listeners such as the live board of a terminal."""

from __future__ import annotations

import contextlib
import re
import threading
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


_AMOUNTS = re.compile(r",? for \d+ min\Z|(?<!HTTP )\d[\d,.]*( min| s)?\b|0x[0-9a-f]+")
"""Parts that change in the text of a wait whose reason is the same: times, amounts, addresses of objects."""


class News:
    """Selects the events that a log shows: changes of state, and each reason of a wait once.

    >>> news = News()
    >>> [news.take(Event("a", "waiting", each)) for each in ("", "for the store; 60 min", "for the store; 59 min")]
    [True, True, False]
    >>> news.take(Event("a", "split", "3 of 9 files")), news.take(Event("a", "split", "4 of 9 files"))
    (True, False)
    """

    def __init__(self) -> None:
        self._states: dict[str, str] = {}
        self._reasons: dict[str, set[str]] = {}
        """The reasons that were shown for the current state of each row."""
        self._lock = threading.Lock()

    def changes(self, event: Event) -> bool:
        """Whether the state of the row has changed."""
        return self._states.get(event.row) != event.state

    def take(self, event: Event) -> bool:
        """Record an event; returns whether to show it."""
        waits = event.state == "waiting" or event.detail.startswith("waiting ")
        reason = _AMOUNTS.sub("", event.detail) if waits else ""
        with self._lock:
            changed = self.changes(event)
            self._states[event.row] = event.state
            known_reasons = set() if changed else self._reasons[event.row]
            is_new_reason = bool(reason) and reason not in known_reasons
            self._reasons[event.row] = known_reasons | {reason}
        return changed or is_new_reason


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
    """The used part of one limit: of time in seconds, of requests, of tokens, or of US dollars."""

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
    """Offer a function that measures what the work of a row has used so far, for `metering`."""
    meters = _meters.get()
    if meters is not None:
        meters[row] = meter


def report(row: str, state: str, detail: str = "", done: int = 0, total: int = 0, story: bool = False) -> None:
    """Report the state of a row to the listeners; see `Event`."""
    for listener in _listeners.get():
        listener(Event(row, state, detail, done, total, story))


@contextlib.contextmanager
def waits(row: str) -> Iterator[Callable[[str], None]]:
    """Report what the block waits for as the state of a row, and that it goes on once the block ends without an error.

    >>> with listening(lambda event: print(event.row, event.state)), waits("Prefect") as waiting:
    ...     waiting("for the server")
    Prefect waiting
    Prefect goes on
    """
    waited = False

    def waiting(text: str) -> None:
        nonlocal waited
        waited = True
        report(row, "waiting", text)

    yield waiting
    if waited:
        report(row, "goes on")
