"""An attempt in progress in the Prefect UI: log lines, a progress artifact, links to its files."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator, Sequence
from contextvars import copy_context
from uuid import UUID

from prefect.logging import get_run_logger

from common.markdown import Markdown, code, link
from common.progress import Meter, Share, listening, metering
from flows.watching.event_log import AttemptLog
from storage.runs.files import GRADE, REQUESTS, RUN, VALIDATIONS
from storage.runs.folders import RunFolder
from tasks.wiring import artifacts
from tasks.wiring.attempts import attempt_folder
from tasks.wiring.context import browser_link, open_store
from tasks.wiring.prefect_server import served, shown
from tasks.wiring.requests import Attempt

UPDATE_SECONDS = 30.0
"""Interval between two updates of the progress artifact."""
_LINKED_FILES = ("submission.csv", "logs/agent.log", VALIDATIONS, REQUESTS)


@contextlib.contextmanager
def watched(attempt: Attempt) -> Iterator[None]:
    """Show the attempt that is made in the block. Errors of showing are logged and never fail the attempt.

    Does nothing with a temporary server, which nobody looks at.
    """
    if not served():
        yield
        return
    attempt_log = AttemptLog(attempt.name, get_run_logger())
    with listening(attempt_log.log), metering() as meters, _progress(attempt.name, meters):
        try:
            yield
        finally:
            attempt_log.log_last_output()
    with shown("the links to the files of a run"):
        show_files(attempt_folder(open_store(attempt.request.store), attempt))


@contextlib.contextmanager
def _progress(row: str, meters: dict[str, Meter]) -> Iterator[None]:
    """Keep a progress artifact up to date in a separate thread, because the server may be slow or away."""
    ended = threading.Event()

    def follow() -> None:
        artifact: UUID | None = None
        while True:
            over = ended.wait(UPDATE_SECONDS if artifact else 0.5)
            with shown("the progress of an attempt"):
                if meter := meters.get(row):
                    artifact = _show(artifact, row, meter())
            if over:
                return

    thread = threading.Thread(target=copy_context().run, args=(follow,), name=f"progress {row}", daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join(5.0)


def _show(artifact: UUID | None, row: str, shares: Sequence[Share]) -> UUID | None:
    percent, text = percent_used(shares), f"{row}: {used(shares)}"
    if artifact is None:
        return artifacts.show_progress(percent, text)
    artifacts.update_progress(artifact, percent, text)
    return artifact


def percent_used(shares: Sequence[Share]) -> float:
    """The share of the limit that will be reached first, in percent.

    >>> percent_used([Share("time", 30, 120), Share("requests", 9, 10), Share("tokens", 5)])
    90.0
    """
    return max((min(100.0, 100.0 * share.used / share.limit) for share in shares if share.limit), default=0.0)


def used(shares: Sequence[Share]) -> str:
    """The used part of each limit, for people.

    >>> used([Share("time", 5400, 86400), Share("requests", 9, 10), Share("tokens", 5000), Share("dollars", 1.5, 20)])
    '1:30 h of 24:00 h, 9 of 10 requests, 5,000 tokens, $1.50 of $20.00'
    """
    return ", ".join(map(_used, shares))


def _used(share: Share) -> str:
    limit = share.limit
    if share.what == "time":
        return f"{_clock(share.used)} of {_clock(limit)}" if limit else _clock(share.used)
    if share.what == "dollars":
        return f"${share.used:,.2f}" + (f" of ${limit:,.2f}" if limit is not None else "")
    return f"{share.used:,.0f}" + (f" of {limit:,.0f}" if limit is not None else "") + f" {share.what}"


def _clock(seconds: float) -> str:
    minutes = int(seconds // 60)
    return f"{minutes // 60}:{minutes % 60:02} h" if minutes >= 10 else f"{seconds:.0f} s"


def show_files(folder: RunFolder) -> None:
    """Create the artifact with links to the files of a run, each of which a browser can open."""
    store, record = folder.store, folder.read_run()
    if record is None:
        return
    urls = {name: f"{folder.of(record).files_url}/{name}" for name in _LINKED_FILES}
    urls |= {name: f"{folder.url}/{name}" for name in (RUN, GRADE)}
    links = [
        Markdown("- {}").format(link(name, browser_link(store, url))) for name, url in urls.items() if store.exists(url)
    ]
    folder_line = Markdown("All files: {}").format(code(store.shown(folder.url)))
    lines = [Markdown("**{}**").format(folder.name), "", *links, "", folder_line]
    artifacts.show(None, Markdown("\n").join(lines), folder.name)
