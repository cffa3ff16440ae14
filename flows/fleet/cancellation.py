"""The process of an attempt asks the server whether its flow run is cancelled, or marked as crashed by mistake.

A worker ends the flow runs that are cancelled. If it was killed, its flow runs have to notice that themselves.
"""

from __future__ import annotations

import contextlib
import os
import signal
import threading
from collections.abc import Iterator
from uuid import UUID

from prefect import get_client
from prefect.states import Running

from flows.fleet import resubmission
from tasks.wiring.prefect_server import shown

POLL_SECONDS = 20.0
"""Interval between two requests for the state of the flow run."""


class CancellationWatcher:
    """Polls the state of a flow run in a thread, and ends this process if the flow run is cancelled."""

    def __init__(self, flow_run: UUID) -> None:
        self.has_ended_work = False
        """Whether this object has ended the work, because the flow run is cancelled and no worker has done so."""
        self._id, self._was_cancelled = flow_run, False
        self._stopped = threading.Event()

    def run(self) -> None:
        """Poll until `stop` is called."""
        while not self._stopped.wait(POLL_SECONDS):
            with shown("the state of an attempt"):
                self._poll()

    def stop(self) -> None:
        """Stop polling."""
        self._stopped.set()

    def _poll(self) -> None:
        with get_client(sync_client=True) as client:
            run = client.read_flow_run(self._id)
            if run.state is None:
                return
            if run.state.is_crashed() and not self._is_followed(run.tags):
                # It was marked as crashed while the server, or this machine, was away.
                client.set_flow_run_state(self._id, Running(message="It is alive."), force=True)
        cancelled = run.state.is_cancelling() or run.state.is_cancelled()
        if cancelled and self._was_cancelled and not self.has_ended_work:  # a worker had time since the last poll
            self.has_ended_work = True
            os.kill(os.getpid(), signal.SIGTERM)
        self._was_cancelled = cancelled

    def _is_followed(self, tags: list[str]) -> bool:
        tag = resubmission.shared_tag(tags)
        return tag is None or resubmission.runs_tagged(tag)[0].id != self._id


@contextlib.contextmanager
def watch_cancellation(flow_run: str) -> Iterator[CancellationWatcher]:
    """Watch the state of this process' flow run during the block."""
    watcher = CancellationWatcher(UUID(flow_run))
    threading.Thread(target=watcher.run, name="state of the attempt", daemon=True).start()
    try:
        yield watcher
    finally:
        watcher.stop()
