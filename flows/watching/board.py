"""The progress of a flow: a live table in a terminal, plain lines elsewhere."""

from __future__ import annotations

import contextlib
import sys
import threading
import time
from collections.abc import Iterator

from rich.console import Console, ConsoleOptions, RenderResult
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from common.progress import Event, News, listening
from common.terminal import clean, raw

_FINAL_STYLES = {"done": "green", "graded": "green", "reused": "cyan"}
_FINAL_STYLES |= {"unavailable": "yellow", "cancelled": "yellow", "failed": "red"}
_OTHER_COLUMNS = 42
"""Width that names leave to the other columns: a state, a bar, and the beginning of a detail."""
_END_OF_LABEL = 7
_ACTIVE_STATES = ("download", "split", "checksum", "running")


class Board:
    """The latest event of each row, rendered on demand."""

    def __init__(self, title: str) -> None:
        self.title = title
        self.rows: dict[str, Event] = {}
        self.since: dict[str, float] = {}
        # The first event with bytes in the current state of each row. Earlier bytes do not count for the rate.
        self.first: dict[str, Event] = {}
        self._lock = threading.Lock()

    def take(self, event: Event) -> bool:
        """Record an event; returns whether the state of its row changed."""
        with self._lock:
            before = self.rows.get(event.row)
            changed = before is None or before.state != event.state
            if changed:
                self.since[event.row] = time.monotonic()
                self.first.pop(event.row, None)
            if event.total and event.row not in self.first:
                self.since[event.row], self.first[event.row] = time.monotonic(), event
            self.rows[event.row] = event
        return changed

    def hear(self, event: Event) -> None:
        """Record an event; a listener of `common.progress`."""
        self.take(event)

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        yield self._table(options.max_width)

    def _table(self, width: int) -> Table:
        with self._lock:
            events = list(self.rows.values())
        final = sum(event.state in _FINAL_STYLES for event in events)
        title = f"{self.title}: {final} of {len(events)} done" if events else self.title
        table = Table(title=title, title_justify="left", title_style="bold", box=None, show_header=False)
        table.padding, table.min_width = (0, 2, 0, 0), len(title) + 2
        # Only the last column gives way: a table that may narrow all of its columns loses the short ones first.
        for no_wrap in (True, True, True, False):
            table.add_column(no_wrap=no_wrap)
        bar_width = 20 if width >= 100 else 12
        label_width = max(width - _OTHER_COLUMNS, _END_OF_LABEL + 4)
        # Active rows come first: a terminal shows some forty rows, the benchmark has hundreds.
        events.sort(key=lambda event: (event.state in _FINAL_STYLES, event.state not in _ACTIVE_STATES))
        for event in events[:40]:
            style = _FINAL_STYLES.get(event.state, "yellow" if event.state in _ACTIVE_STATES else "dim")
            seconds = time.monotonic() - self.since[event.row]
            bar = ProgressBar(event.total, event.done, width=bar_width) if event.total else ""
            clock = "" if event.state in _FINAL_STYLES else f"{seconds:.0f} s"
            detail = ", ".join(filter(None, [event.detail, pace(event, self.first.get(event.row), seconds)]))
            label = Text(shortened(clean(event.row), label_width))
            detail_text = Text(clean(detail), "dim", no_wrap=True, overflow="ellipsis")
            table.add_row(label, Text(event.state, style), bar or clock, detail_text)
        if len(events) > 40:
            table.add_row(f"... and {len(events) - 40} more", "", "", "")
        return table


def shortened(text: str, width: int) -> str:
    """A name in at most `width` columns, with its end, which tells the runs of a competition from each other.

    >>> shortened("nfl-player-contact-detection/12", 20)
    'nfl-player-..tion/12'
    """
    return text if len(text) <= width else f"{text[: width - _END_OF_LABEL - 2]}..{text[-_END_OF_LABEL:]}"


def pace(event: Event, first: Event | None, seconds: float) -> str:
    """Bytes so far, their rate, and the time left; empty without a total.

    >>> pace(Event("a", "split", "", 30_000_000, 90_000_000), Event("a", "split", "", 10_000_000, 90_000_000), 2.0)
    '30 of 90 MB, 10.0 MB/s, 6 s left'
    """
    if not event.total or event.state in _FINAL_STYLES:
        return ""
    text = f"{event.done / 1e6:,.0f} of {event.total / 1e6:,.0f} MB"
    written = event.done - first.done if first else 0
    if written <= 0 or seconds <= 0:
        return text
    rate = written / seconds
    return f"{text}, {rate / 1e6:,.1f} MB/s, {_clock((event.total - event.done) / rate)} left"


def _clock(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes} min" if hours else f"{minutes} min {rest} s" if minutes else f"{rest} s"


@contextlib.contextmanager
def board(title: str) -> Iterator[None]:
    """Show the events of the `with` block: live in a terminal, otherwise as lines on stderr, see `News`."""
    console = Console(file=raw(sys.stderr), highlight=False)  # it moves the cursor
    state = Board(title)
    if console.is_terminal and not console.is_dumb_terminal:  # where rich would show nothing
        with Live(state, console=console, refresh_per_second=4, transient=True), listening(state.hear):
            yield
        return

    news, last_lines = News(), dict[str, str]()

    def line(event: Event) -> None:
        text = f"{event.row}: {event.state} {event.detail}".rstrip()
        new = news.take(event)
        # Some ends are reported twice: by the work itself, and by the flow that waits for it.
        if (new or event.state in _FINAL_STYLES) and last_lines.get(event.row) != text:
            last_lines[event.row] = text
            print(f"{text}\n", end="", file=sys.stderr, flush=True)  # noqa: T201  # in one piece: threads write lines

    with listening(line):
        yield
