"""The backends of this process, one per isolation, so that an interrupt can stop everything that they started."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator, Sequence
from threading import Timer

from common.errors import UserError
from sandbox.docker.backend import DockerBackend
from sandbox.isolation import Isolation
from sandbox.process.backend import ProcessBackend

# Global, because Ctrl-C goes to the process and not to a task: it has to stop the agents of all threads.
_backends: dict[Isolation, ProcessBackend | DockerBackend] = {}
_refusal = ""  # why no agent may start any more
_lock = threading.Lock()


def backend(isolation: Isolation, allowed_hosts: Sequence[str]) -> ProcessBackend | DockerBackend:
    """The backend for the chosen isolation. Raises `BackendError` if there is no container engine."""
    with _lock:
        if _refusal:
            raise UserError(_refusal)
        if isolation not in _backends:
            _backends[isolation] = _make(isolation, allowed_hosts)
        return _backends[isolation]


def _make(isolation: Isolation, allowed_hosts: Sequence[str]) -> ProcessBackend | DockerBackend:
    if isolation.backend == "process":
        return ProcessBackend(allow_untrusted=isolation.allow_untrusted)
    return DockerBackend(
        policy=isolation.network,
        allowed_hosts=allowed_hosts,
        runtime=isolation.runtime,
        allow_privileged=isolation.allow_privileged,
    )


@contextlib.contextmanager
def agents_until(seconds: float, what: str) -> Iterator[None]:
    """After `seconds`, end all agents of this process, and start no more; their tasks then fail with a message.

    The end of a flow by Prefect's time-out only stops waiting for the threads of its tasks, which wait for agents.
    """
    global _refusal

    def end() -> None:
        global _refusal
        with _lock:
            _refusal = f"stopped: the time of {what} is over ({seconds / 3600:.1f} h); run it again to continue"
        stop_all()

    timer = Timer(seconds, end)
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()
        timer.join()
        with _lock:
            _refusal = ""


def cancelled() -> BaseException:
    """The error of a run that was cancelled: by the end of the time for agents, or by Ctrl-C."""
    with _lock:
        return UserError(_refusal) if _refusal else KeyboardInterrupt()


def stop_all() -> None:
    """Stop every agent that this process started or waits for."""
    for each in _taken():
        each.close()


def leave_all() -> None:
    """Leave the agents of this process alone when it ends. They stay supervised, and the next process finds them."""
    for each in _taken():
        each.leave()


def _taken() -> list[ProcessBackend | DockerBackend]:
    with _lock:
        running = list(_backends.values())
        _backends.clear()
    return running
