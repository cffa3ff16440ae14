"""The backends of this process, one of a kind, so that an interrupt can stop everything they started."""

from __future__ import annotations

import threading

from sandbox.process import ProcessBackend

_backends: dict[bool, ProcessBackend] = {}
_lock = threading.Lock()


def backend(allow_untrusted: bool) -> ProcessBackend:
    """The process backend; `allow_untrusted` is the operator's explicit word."""
    with _lock:
        if allow_untrusted not in _backends:
            _backends[allow_untrusted] = ProcessBackend(allow_untrusted=allow_untrusted)
        return _backends[allow_untrusted]


def stop_all() -> None:
    """End every agent that this process started or waits for."""
    with _lock:
        running = list(_backends.values())
        _backends.clear()
    for each in running:
        each.close()
