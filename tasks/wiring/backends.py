"""The backends of this process, one per isolation, so that an interrupt can stop everything that they started."""

from __future__ import annotations

import threading
from collections.abc import Sequence

from sandbox.docker.backend import DockerBackend
from sandbox.isolation import Isolation
from sandbox.process.backend import ProcessBackend

# Global, because Ctrl-C goes to the process and not to a task: it has to stop the agents of all threads.
_backends: dict[Isolation, ProcessBackend | DockerBackend] = {}
_lock = threading.Lock()


def backend(isolation: Isolation, allowed_hosts: Sequence[str]) -> ProcessBackend | DockerBackend:
    """The backend for the chosen isolation. Raises `BackendError` if there is no container engine."""
    with _lock:
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


def stop_all() -> None:
    """Stop every agent that this process started or waits for."""
    with _lock:
        running = list(_backends.values())
        _backends.clear()
    for each in running:
        each.close()
