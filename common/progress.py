"""What is going on, told to whoever listens: the terminal's live board, a log."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import NamedTuple


class Event(NamedTuple):
    """The state of one row of the board, e.g. a competition being prepared or a run of an agent."""

    row: str
    state: str
    detail: str = ""
    done: int = 0
    total: int = 0


Listener = Callable[[Event], None]
_listeners: list[Listener] = []
_lock = threading.Lock()


def listen(listener: Listener) -> Callable[[], None]:
    """Call `listener` for every event of this process from now on; returns the function that ends it."""
    with _lock:
        _listeners.append(listener)

    def end() -> None:
        with _lock:
            _listeners.remove(listener)

    return end


def tell(row: str, state: str, detail: str = "", done: int = 0, total: int = 0) -> None:
    """Tell all listeners."""
    with _lock:
        listeners = list(_listeners)
    for listener in listeners:
        listener(Event(row, state, detail, done, total))
