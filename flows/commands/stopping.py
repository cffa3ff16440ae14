"""Ctrl-C: agents are ended, nothing else starts, and the process ends within seconds, whatever it waits for.

Agents of a work pool are not ended: the process leaves them alone, and ends as soon, also at SIGHUP. SIGTERM (`kill`)
has the same effect. On one machine, SIGHUP has not: it comes when a connection is lost, and nobody has asked for the
end of agents that may have run for a day. They go on, `mlebench ls` calls them interrupted, and the same command
continues them.
"""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any

INTERRUPTED = 130
"""Exit code after Ctrl-C."""
STOPPED = "stopped. Finished work is kept; run the same command again to continue."
END_SECONDS = 15.0
"""Time that agents have to end: their grace period, which is at most 3 seconds then, and a margin for busy machines."""
LEAVE_SECONDS = 5.0
"""Time that the flow has for storing what its agents left, once they have ended. It is stored by the next run, too."""
_REACTION_SECONDS = 2.0
"""Time that the main thread has to react to a signal."""
_SIGNALS = (signal.SIGINT, signal.SIGTERM)
_SHOW_CURSOR = "\x1b[?25h"


@contextlib.contextmanager
def interruptible(go_on: str, *, ends_agents: bool = True) -> Iterator[None]:
    """End the agents at the first Ctrl-C or SIGTERM in the block, then the process; a second one is immediate.

    A flow may wait for anything: a slot, a store that is away, a server. After the agents have ended, it is given a few
    seconds, and then this process exits. That is safe, as every step can be killed at any moment.

    Args:
        go_on: The line that is printed last, which says how to go on.
        ends_agents: Whether this process has agents, which end with it.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    left = threading.Event()
    stopping = Signals(left, go_on, ends_agents=ends_agents)

    def stop(_signal: int, _frame: Any) -> None:
        stopping.handle()
        raise KeyboardInterrupt

    # A flow run whose process is gone would seem to go on: without agents, the end of the terminal is a reason to end.
    numbers = (
        _SIGNALS if ends_agents or signal.getsignal(signal.SIGHUP) == signal.SIG_IGN else (*_SIGNALS, signal.SIGHUP)
    )
    previous_handlers = {number: signal.signal(number, stop) for number in numbers}
    try:
        with _noticed(stopping, numbers):
            yield
    finally:
        left.set()
        if not stopping.reactions:
            for number, handler in previous_handlers.items():
                signal.signal(number, handler)


class Signals:
    """The effect of signals: the first one ends the agents, and then this process; a second one ends it at once.

    Each signal is reported twice, by Python's handler in the main thread and by the thread that watches, and either may
    be late. Therefore both report how many signals they know of, and the larger number counts.
    """

    def __init__(self, left: threading.Event, go_on: str, *, ends_agents: bool = True) -> None:
        self.reactions = 0
        self._handled = 0
        self._lock = threading.RLock()  # a handler may run while its own thread is in `react`
        self._left, self._go_on, self._ends_agents = left, go_on, ends_agents

    def handle(self) -> None:
        """React to the signal that the main thread has just received, unless the watching thread has done so."""
        self._handled += 1
        self.react(self._handled)

    def react(self, signals: int) -> None:
        """React to the last of this many signals, once."""
        with self._lock:
            if signals <= self.reactions:
                return
            self.reactions = signals
        if signals > 1:
            if self._ends_agents:
                _end_containers()
            rest = "Agents that have not ended yet are being ended." if self._ends_agents else self._go_on
            _exit(f"Stopped at once. {rest}")
        agents = "agents are being ended, no others start" if self._ends_agents else "the agents of the work pool go on"
        _tell(f"stopping: {agents}; Ctrl-C again stops at once")
        end = partial(_end, self._left, self._go_on, ends_agents=self._ends_agents)
        threading.Thread(target=end, name="stopping", daemon=True).start()


@contextlib.contextmanager
def _noticed(stopping: Signals, numbers: Sequence[int]) -> Iterator[None]:
    """React to signals also if the main thread does not: Python's handlers run there, and it may be stuck."""
    reader, writer = os.pipe()
    os.set_blocking(writer, False)
    before = signal.set_wakeup_fd(writer, warn_on_full_buffer=False)

    def watch() -> None:
        received = 0
        while number := os.read(reader, 1):
            received += number[0] in numbers
            give_up = time.monotonic() + _REACTION_SECONDS
            while stopping.reactions < received and (remaining := give_up - time.monotonic()) > 0:
                time.sleep(min(remaining, 0.05))
            stopping.react(received)
        os.close(reader)

    threading.Thread(target=watch, name="signals", daemon=True).start()
    try:
        yield
    finally:
        signal.set_wakeup_fd(before)
        os.close(writer)


def _tell(text: str) -> None:
    """Write a line to standard error, which may be a terminal that was closed."""
    with contextlib.suppress(OSError):
        os.write(2, f"\n{text}\n".encode())


def _end_containers() -> None:
    """Start a process that ends the agents without supervisors, such as those in containers."""
    backends = sys.modules.get("sandbox.backends")
    if backends and any(not backend.capabilities.supervised for backend in backends.loaded()):
        from tasks.wiring.cancelling import spawn_cleanup

        spawn_cleanup()


def _end(left: threading.Event, go_on: str, *, ends_agents: bool = True) -> None:
    if ends_agents:
        from tasks.wiring.backends import terminate_agents

        # A separate thread does this, because a container engine may not answer.
        reason = "stopped by Ctrl-C"
        ending = threading.Thread(target=terminate_agents, args=(reason,), name="ending agents", daemon=True)
        ending.start()
        ending.join(END_SECONDS)
    if not left.wait(LEAVE_SECONDS):
        _exit(go_on)


def _exit(message: str) -> None:
    """End this process and its child processes, except the supervisors of agents, which are ending the agents."""
    if sys.stderr.isatty():
        _tell(_SHOW_CURSOR)
    _tell(f"mlebench: {message}")
    _end_server()
    _kill_children()
    os._exit(INTERRUPTED)


def _kill_children() -> None:
    """Kill the other processes of this session: those of Dask. Supervisors of agents have sessions of their own."""
    import psutil

    with contextlib.suppress(psutil.Error):
        for child in psutil.Process().children(recursive=True):
            with contextlib.suppress(psutil.Error):
                if os.getsid(child.pid) == os.getsid(0):
                    child.kill()


def _end_server() -> None:
    """End the temporary server without waiting for it."""
    if module := sys.modules.get("flows.temporary_server"):
        module.terminate()
