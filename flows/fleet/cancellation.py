"""The process of an attempt asks the server whether its flow run is cancelled, or marked as crashed by mistake.

A worker ends the flow runs that are cancelled. If it was killed, its flow runs have to notice that themselves.
"""

from __future__ import annotations

import contextlib
import os
import select
import signal
import threading
from collections.abc import Callable, Iterator
from typing import Any
from uuid import UUID

from prefect import get_client, runtime
from prefect.client.schemas.objects import FlowRun, State
from prefect.flows import Flow
from prefect.states import Cancelled, Running

from flows.fleet import resubmission
from tasks.wiring.prefect_server import served, shown

POLL_SECONDS = 10.0
"""Interval between two requests for the state of the flow run."""
END_SECONDS = 20.0
"""Time that a flow run which is cancelled, and whose agent is being ended, has to end before it gets a signal."""


class CancellationWatcher:
    """Polls the state of a flow run in a thread. If it is cancelled, ends its work, and after a while its process."""

    def __init__(self, flow_run: UUID, end_work: Callable[[], None]) -> None:
        self.has_ended_process = False
        """Whether this object has sent this process a signal, because its flow run is cancelled, and no worker did."""
        self._id, self._end_work = flow_run, end_work
        self._was_cancelled = self._is_ending = self._stopped = False

    def run(self, signals: int) -> None:
        """Poll until `stop` is called, and at once after a signal: the flow run may be cancelled.

        Args:
            signals: the read end of a pipe that gets a byte for each signal.
        """
        while not self._stopped:
            seconds = END_SECONDS if self._was_cancelled else POLL_SECONDS
            if select.select([signals], [], [], seconds)[0]:
                received = os.read(signals, 64)
                if not received:
                    break  # the other end is closed
                self._is_ending = self._is_ending or signal.SIGTERM in received
            with shown("the state of an attempt"):
                self._poll()
        os.close(signals)

    def stop(self) -> None:
        """Stop polling."""
        self._stopped = True

    def _poll(self) -> None:
        with get_client(sync_client=True) as client:
            run = client.read_flow_run(self._id)
            if run.state is None:
                return
            if run.state.is_crashed() and not self._is_followed(run.tags):
                # It was marked as crashed while the server, or this machine, was away.
                client.set_flow_run_state(self._id, Running(message="It is alive."), force=True)
        cancelled = run.state.is_cancelling() or run.state.is_cancelled()
        if self._stopped:  # meanwhile
            return
        if cancelled and not self._was_cancelled:
            self._end_work()
        elif cancelled and not self._is_ending:
            self.has_ended_process = True
            os.kill(os.getpid(), signal.SIGTERM)
        self._was_cancelled = cancelled

    def _is_followed(self, tags: list[str]) -> bool:
        tag = resubmission.shared_tag(tags)
        return tag is None or resubmission.runs_tagged(tag)[0].id != self._id


@contextlib.contextmanager
def watch_cancellation(flow_run: str, end_work: Callable[[], None]) -> Iterator[CancellationWatcher]:
    """Watch the state of this process' flow run during the block.

    Args:
        flow_run: its id.
        end_work: called in another thread once it is cancelled; returns soon.
    """
    with _watching(flow_run, end_work) as (watcher, writer):
        # Signals are not handled here: Prefect asks whether its own handler is installed before it cancels a flow run.
        before = signal.set_wakeup_fd(writer, warn_on_full_buffer=False)
        try:
            yield watcher
        finally:
            watcher.stop()
            signal.set_wakeup_fd(before)


@contextlib.contextmanager
def cancellable(end_work: Callable[[], None]) -> Iterator[None]:
    """End the work of a command's flow run that is cancelled in the UI; if it goes on, end the process.

    Does nothing in the flow run of a deployment, whose worker ends it, and with a temporary server, which nobody sees.

    Args:
        end_work: called in another thread once the flow run is cancelled; returns soon.
    """
    if not served() or runtime.deployment.id is not None:
        yield
        return
    with _watching(str(runtime.flow_run.id), end_work):
        yield


def confirm(flow: Flow[..., Any], flow_run: FlowRun, state: State[Any]) -> None:  # Prefect gives the names
    """Mark a flow run as cancelled that has ended because it was to be; a hook, for those that no worker confirms."""
    with shown("the end of a flow run"), get_client(sync_client=True) as client:
        client.set_flow_run_state(flow_run.id, Cancelled(message="Its agents were ended."), force=True)


@contextlib.contextmanager
def _watching(flow_run: str, end_work: Callable[[], None]) -> Iterator[tuple[CancellationWatcher, int]]:
    watcher = CancellationWatcher(UUID(flow_run), end_work)
    reader, writer = os.pipe()
    os.set_blocking(writer, False)
    threading.Thread(target=watcher.run, args=(reader,), name="state of the flow run", daemon=True).start()
    try:
        yield watcher, writer
    finally:
        watcher.stop()
        os.close(writer)
