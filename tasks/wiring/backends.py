"""The backends of this process, one per isolation, so that an interrupt can stop all agents that they started."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from threading import Timer

from common.errors import UserError
from common.settings import Settings
from sandbox import backends
from sandbox.backend import Backend
from sandbox.isolation import Isolation


@dataclass
class _Agents:
    """The backends that run agents; `refusal` says why no agent may start any more, and is empty if agents may."""

    backends: dict[Isolation, Backend] = field(default_factory=dict)
    refusal: str = ""
    lock: threading.Lock = field(default_factory=threading.Lock)

    def refuse(self, reason: str) -> None:
        """Start no more agents for this reason; start some again if it is empty."""
        with self.lock:
            self.refusal = reason

    def take(self) -> list[Backend]:
        """Return all backends, and forget them."""
        with self.lock:
            running = list(self.backends.values())
            self.backends.clear()
        return running


# Global, because Ctrl-C and the time limit for all agents concern the process and not a single task.
_agents = _Agents()


def backend(isolation: Isolation, settings: Settings) -> Backend:
    """The backend for the chosen isolation. Raises `BackendError` if this machine cannot run it."""
    with _agents.lock:
        if _agents.refusal:
            raise UserError(_agents.refusal)
        if isolation not in _agents.backends:
            create = backends.load(isolation.backend).create
            _agents.backends[isolation] = create(isolation, settings.allowed_hosts, settings.scratch)
        return _agents.backends[isolation]


@contextlib.contextmanager
def agents_time_limit(seconds: float, what: str) -> Iterator[None]:
    """After `seconds`, end all agents of this process, and start no more; their tasks then fail with a message.

    The end of a flow by Prefect's time-out only stops waiting for the threads of its tasks, which wait for agents.
    """

    def end() -> None:
        terminate_agents(f"stopped: the time of {what} is over ({seconds / 3600:.1f} h); run it again to continue")

    timer = Timer(seconds, end)
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()
        timer.join()
        _agents.refuse("")


def termination_reason(otherwise: BaseException) -> BaseException:
    """The error of a run that was ended, or not started: the reason that ended all agents, if there is one."""
    with _agents.lock:
        return UserError(_agents.refusal) if _agents.refusal else otherwise


def terminate_agents(reason: str) -> None:
    """Stop every agent of this process, and start no more: the runs that wait for a slot fail with this reason."""
    _agents.refuse(reason)
    stop_all()


@contextlib.contextmanager
def without_agents(reason: str) -> Iterator[None]:
    """Stop every agent of this process, and start none during the block."""
    earlier_refusal = _agents.refusal
    terminate_agents(earlier_refusal or reason)
    try:
        yield
    finally:
        _agents.refuse(earlier_refusal)


def stop_all() -> None:
    """Stop every agent that this process started or waits for."""
    for running_backend in _agents.take():
        running_backend.close()


def leave_all() -> None:
    """Leave the agents of this process alone when it ends. They stay supervised, and the next process finds them."""
    for running_backend in _agents.take():
        running_backend.leave()
