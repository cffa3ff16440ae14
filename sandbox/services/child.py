"""A run's services in a process of their own, so that an agent that harms them harms no other run.

The process has the addresses and keys of the providers, and nothing else of the operator's: it asks the orchestrator to
check submissions. It ends when the orchestrator does. `sandbox.services.separate` starts it.
"""

from __future__ import annotations

import base64
import contextlib
import itertools
import logging
import os
import pickle
import resource
import socket
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import Any

from sandbox.services.host import ServiceHost
from sandbox.services.messages import Sender, received
from sandbox.validation.checker import Verdict
from sandbox.validation.endpoints import ENDPOINTS

NICENESS = 5
WATCH_SECONDS, STUCK_SECONDS = 5.0, 60.0


class _Answers:
    """The orchestrator's answers to requests that wait for them."""

    def __init__(self) -> None:
        self.numbers = itertools.count()
        self.waiting: dict[int, tuple[threading.Event, list[dict[str, Any]]]] = {}

    def put(self, number: int, verdict: dict[str, Any]) -> None:
        """Pass on a verdict."""
        event, verdicts = self.waiting.pop(number)
        verdicts.append(verdict)
        event.set()


class _RemoteChecker:
    """Lets the orchestrator check the files of an endpoint."""

    def __init__(self, endpoint: str, sender: Sender, answers: _Answers) -> None:
        self._endpoint, self._sender, self._answers = endpoint, sender, answers

    def __call__(self, *files: Path) -> Verdict:
        number = next(self._answers.numbers)
        event, verdicts = self._answers.waiting[number] = threading.Event(), list[dict[str, Any]]()
        self._sender.send(check=[str(file) for file in files], endpoint=self._endpoint, number=number)
        event.wait()
        return ENDPOINTS[self._endpoint].verdict(**verdicts[0])

    def close(self) -> None:
        """Nothing: the orchestrator closes the checker."""


class _ForwardingHandler(logging.Handler):
    """Sends log records to the orchestrator."""

    def __init__(self, sender: Sender) -> None:
        super().__init__(logging.WARNING)
        self._sender = sender

    def emit(self, record: logging.LogRecord) -> None:
        with contextlib.suppress(OSError):
            self._sender.send(log=self.format(record)[:4000], level=record.levelno, name=record.name)


def limit(memory_bytes: int, descriptors: int) -> None:
    """Limit this process. A request that needs more memory fails."""
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    for resource_id, maximum in ((resource.RLIMIT_DATA, memory_bytes), (resource.RLIMIT_NOFILE, descriptors)):
        with contextlib.suppress(ValueError, OSError):  # a lower limit may be set already
            resource.setrlimit(resource_id, (maximum, maximum))
    with contextlib.suppress(OSError):
        os.nice(NICENESS)
    with contextlib.suppress(OSError):  # if the machine runs out of memory, this process rather than the orchestrator
        Path("/proc/self/oom_score_adj").write_text("500")


def _end_if_stuck(host: ServiceHost) -> None:
    """End the process when its servers no longer do anything, so that the orchestrator starts it again."""
    while True:
        time.sleep(WATCH_SECONDS)
        if not host.responds(STUCK_SECONDS):
            os._exit(1)


def main() -> None:
    """Serve as the first line of standard input says, until it is closed."""
    control, replies = os.fdopen(os.dup(0), "rb"), Sender(os.dup(1))
    os.dup2(2, 1)  # what libraries print must not be mixed with the replies
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    try:
        start = pickle.loads(base64.b64decode(control.readline()))  # written by the orchestrator
        limit(start["memory_bytes"], start["descriptors"])
        tempfile.tempdir = str(start["spec"].folder)  # uploads go where the run's disk space is, not to a small /tmp
        logging.getLogger().addHandler(_ForwardingHandler(replies))
        listeners = {name: socket.socket(fileno=number) for name, number in start["listeners"].items()}
        answers = _Answers()
        checkers = {name: _RemoteChecker(name, replies, answers) for name in start["spec"].limits}
        host = ServiceHost(start["spec"], listeners, checkers)
    except Exception as error:
        replies.send(failed=f"{type(error).__name__}: {error}")
        return
    threading.Thread(target=_end_if_stuck, args=(host,), daemon=True).start()
    replies.send(ready=True)
    for message in received(control):
        if "verdict" in message:
            answers.put(message["number"], message["verdict"])
        elif "reset" in message:
            host.reset_limits()
            replies.send(reset=True)
        elif "close" in message:
            host.close()
            sys.stderr.flush()
            with contextlib.suppress(OSError):
                replies.send(closed=True)
            break
    os._exit(0)  # at once: the orchestrator is gone, or threads may still wait for it


if __name__ == "__main__":
    main()
