"""What the process of an attempt learns about its own flow run from the server: that it is cancelled, or thought dead.

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

from flows.fleet import again
from tasks.wiring.prefect_server import shown

LOOK_SECONDS = 20.0


class Obeying:
    """Looks at the state of a flow run from time to time, in a thread."""

    def __init__(self, flow_run: UUID) -> None:
        self.told = False
        """Whether this object has ended the work, because the flow run is cancelled and no worker has done so."""
        self._id, self._asked = flow_run, False
        self._ended = threading.Event()

    def follow(self) -> None:
        """Look again and again until `end` is called."""
        while not self._ended.wait(LOOK_SECONDS):
            with shown("the state of an attempt"):
                self._look()

    def end(self) -> None:
        """Look no more."""
        self._ended.set()

    def _look(self) -> None:
        with get_client(sync_client=True) as client:
            run = client.read_flow_run(self._id)
            if run.state is None:
                return
            if run.state.is_crashed() and not self._followed(run.tags):
                # It was marked as dead while the server, or this machine, was away.
                client.set_flow_run_state(self._id, Running(message="It is alive."), force=True)
        cancelled = run.state.is_cancelling() or run.state.is_cancelled()
        if cancelled and self._asked and not self.told:  # a worker had time to do this
            self.told = True
            os.kill(os.getpid(), signal.SIGTERM)
        self._asked = cancelled

    def _followed(self, tags: list[str]) -> bool:
        tag = again.family(tags)
        return tag is None or again.members(tag)[0].id != self._id


@contextlib.contextmanager
def obeying(flow_run: str) -> Iterator[Obeying]:
    """Look at the state of this process' flow run during the block."""
    found = Obeying(UUID(flow_run))
    threading.Thread(target=found.follow, name="state of the attempt", daemon=True).start()
    try:
        yield found
    finally:
        found.end()
