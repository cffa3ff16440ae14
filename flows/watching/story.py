"""The story of a flow run in its log: what is prepared, which agents start, validate and end, and their scores."""

from __future__ import annotations

import contextlib
import time
from collections import deque
from collections.abc import Iterator
from typing import Any

from prefect.logging import get_run_logger

from common.progress import Event, News, listening
from common.terminal import clean
from tasks.wiring.prefect_server import served

LINE_SECONDS = 60.0
"""The agent's output is logged at most this often: the complete log is a file of the run."""
_LAST_WORDS = 5


class Story:
    """Logs each change of state and reason of a wait of each row, and what else is worth a line.

    A listener of `common.progress`.
    """

    def __init__(self, log: Any) -> None:
        self._log = log
        self._news = News()

    def hear(self, event: Event) -> None:
        """Log an event, unless it only repeats the state or the output of an agent."""
        if event.state == "waiting" and not event.detail:  # it will say for what, or begin at once
            return
        begins = self._news.changes(event) and event.state == "running"
        if self._news.take(event) or event.story:
            text = f"agent {event.detail}" if begins else f"{event.state}: {event.detail}".removesuffix(": ")
            self._tell(f"{event.row}: {event.detail if event.story else text}")

    def _tell(self, text: str) -> None:
        self._log.info("%s", clean(text))


class AttemptStory(Story):
    """Logs the story of one attempt, and from time to time the output of its agent."""

    def __init__(self, row: str, log: Any) -> None:
        super().__init__(log)
        self._row, self._said = row, 0.0
        self._output: deque[str] = deque(maxlen=_LAST_WORDS)

    def hear(self, event: Event) -> None:
        """Log an event of the attempt."""
        if event.row != self._row:
            return
        if event.state == "running" and event.detail and not event.story and not self._news.changes(event):
            self._output.append(event.detail)
            if time.monotonic() - self._said > LINE_SECONDS:
                self._said = time.monotonic()
                self._tell(f"{self._row}: {event.detail}")
        super().hear(event)

    def last_words(self) -> None:
        """Log the end of the agent's output."""
        if self._output:
            self._tell("\n".join([f"{self._row}: the agent's last output:", *self._output]))


@contextlib.contextmanager
def telling() -> Iterator[None]:
    """Tell what happens in the block in the log of the flow run. Does nothing without a server: nobody sees its log."""
    if not served():
        yield
        return
    with listening(Story(get_run_logger()).hear):
        yield
