"""The end of a worker: within seconds after a signal, whatever it waits for."""

from __future__ import annotations

import contextlib
import os
import signal
import threading
from collections.abc import Callable
from types import FrameType
from typing import NoReturn

END_SECONDS = 25.0
"""Time that a worker has to stop its flow runs and to say so to the server. `deployments.background` waits for 30."""
_INTERRUPTED = 130
_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


def stop_on_signals(name: str, leave: Callable[[], None] | None = None) -> None:
    """End this process at the first signal: it has `END_SECONDS` to end by itself. A second signal ends it at once.

    Without that, it would wait for a server that is away as long as it does while it works. The agents go on in both
    cases, as do flow runs that have not ended by then: the next worker of this host finds the agents.

    Args:
        name: name of the worker, for messages.
        leave: called at the first SIGTERM instead: what the worker has started will not outlive it.
    """
    received: list[int] = []

    def end(why: str, code: int) -> NoReturn:
        _tell(f"Worker {name} {why}. Agents in progress go on.")
        os._exit(code)

    def stop(number: int, _frame: FrameType | None) -> None:
        received.append(number)
        if len(received) > 1:
            end("stopped at once", _INTERRUPTED)
        _tell(f"Worker {name} stops: {signal.Signals(number).name}. A second signal ends it at once.")
        if leave is not None and number == signal.SIGTERM:
            leave()
            return
        late = threading.Timer(END_SECONDS, end, ("stopped without an answer of the Prefect server", 0))
        late.daemon = True
        late.start()
        raise KeyboardInterrupt

    for number in _SIGNALS:
        if signal.getsignal(number) is not signal.SIG_IGN:  # as with nohup
            signal.signal(number, stop)


def _tell(text: str) -> None:
    """Write a line to standard error, which may be a terminal that was closed; signals interrupt other output."""
    with contextlib.suppress(OSError):
        os.write(2, f"{text}\n".encode())
