"""The log of a flow run: what is prepared, which agents start, validate and end, and their scores."""

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
_MAX_LAST_LINES = 5


class EventLog:
    """Logs each change of state of each row, each reason of a wait, and events that are marked for the log.

    A listener of `common.progress`.
    """

    def __init__(self, logger: Any) -> None:
        self._logger = logger
        self._news = News()

    def log(self, event: Event) -> None:
        """Log an event, unless it only repeats the state or the output of an agent."""
        if event.state == "waiting" and not event.detail:  # the next event says what it waits for, or that it began
            return
        begins = self._news.changes(event) and event.state == "running"
        if self._news.take(event) or event.story:
            text = f"agent {event.detail}" if begins else f"{event.state}: {event.detail}".removesuffix(": ")
            self._write(f"{event.row}: {event.detail if event.story else text}")

    def _write(self, text: str) -> None:
        self._logger.info("%s", clean(text))


class AttemptLog(EventLog):
    """Logs the events of one attempt, and from time to time the output of its agent."""

    def __init__(self, row: str, logger: Any) -> None:
        super().__init__(logger)
        self._row, self._output_logged_at = row, 0.0
        self._output: deque[str] = deque(maxlen=_MAX_LAST_LINES)

    def log(self, event: Event) -> None:
        """Log an event of the attempt."""
        if event.row != self._row:
            return
        if event.state == "running" and event.detail and not event.story and not self._news.changes(event):
            self._output.append(event.detail)
            if time.monotonic() - self._output_logged_at > LINE_SECONDS:
                self._output_logged_at = time.monotonic()
                self._write(f"{self._row}: {event.detail}")
        super().log(event)

    def log_last_output(self) -> None:
        """Log the end of the agent's output."""
        if self._output:
            self._write("\n".join([f"{self._row}: the agent's last output:", *self._output]))


@contextlib.contextmanager
def logging_events() -> Iterator[None]:
    """Log the events of the block in the log of the flow run. Does nothing with a temporary server."""
    if not served():
        yield
        return
    with listening(EventLog(get_run_logger()).log):
        yield
