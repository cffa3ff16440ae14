"""The backends of this process, one of a kind, so that an interrupt can stop everything they started."""

from __future__ import annotations

import threading

from common.settings import get_settings
from sandbox.docker.backend import DockerBackend
from sandbox.isolation import Isolation
from sandbox.process.backend import ProcessBackend

_backends: dict[Isolation, ProcessBackend | DockerBackend] = {}
_lock = threading.Lock()


def backend(isolation: Isolation) -> ProcessBackend | DockerBackend:
    """The backend that the operator chose. Raises `BackendError` if there is no container engine."""
    with _lock:
        if isolation not in _backends:
            _backends[isolation] = _make(isolation)
        return _backends[isolation]


def _make(isolation: Isolation) -> ProcessBackend | DockerBackend:
    if isolation.backend == "process":
        return ProcessBackend(allow_untrusted=isolation.allow_untrusted)
    return DockerBackend(
        policy=isolation.network,
        allowed_hosts=get_settings().allowed_hosts,
        runtime=isolation.runtime,
        allow_privileged=isolation.allow_privileged,
    )


def stop_all() -> None:
    """End every agent that this process started or waits for."""
    with _lock:
        running = list(_backends.values())
        _backends.clear()
    for each in running:
        each.close()
