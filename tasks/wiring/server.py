"""Prefect's server may be away: requests wait for it, and what it only shows never fails the work."""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Iterator
from contextvars import ContextVar
from typing import Any

from common import progress
from common.causes import explain, patiently
from common.settings import get_settings
from tasks.wiring.logs import outlast_worker

_PASSING = (502, 503, 504)  # of a proxy before the server; 500 is an error of the server, which stays
_LONGEST_PAUSE = 15.0
_TRIES = 2  # of what is only shown: a busy server answers then, and the work is not held up by one that is away
_waits: ContextVar[bool] = ContextVar("waits for the server", default=True)


_temporary: str | None = None
"""The address of the temporary server of this process."""


def set_temporary(api_url: str | None) -> None:
    """Note that the server at this address ends with this process; None: there is no such server."""
    global _temporary
    _temporary = api_url


def served() -> bool:
    """Whether a Prefect server is configured. Nobody looks at a temporary one, and it does not stay."""
    from prefect.settings import get_current_settings

    return get_current_settings().api.url not in (None, _temporary)


def outlast_server() -> None:
    """Have this flow outlast its worker and an absence of the server. Every flow calls this first. Idempotent.

    What the process writes goes to a file; see `outlast_worker`. Requests to a Prefect server wait; see `wait_for_it`.
    """
    outlast_worker()
    wait_for_it()


def wait_for_it() -> None:
    """Have this process' requests to a Prefect server wait until it answers, for MLEBENCH_PATIENCE seconds.

    Prefect's own retries last a minute, and there are none for the first request of a client: a flow would end with the
    next change of its state. A temporary server is not waited for: as a child of this process it does not come back.
    Idempotent.
    """
    from prefect.client.base import PrefectHttpxSyncClient as Client

    if hasattr(Client.send, "outlasts"):
        return
    original = Client.send

    @functools.wraps(original)
    def send(self: Any, request: Any, *args: Any, **options: Any) -> Any:
        def once() -> Any:
            return original(self, request, *args, **options)

        if not _waits.get() or not served():
            return once()
        return patiently(
            once,
            seconds=get_settings().patience,
            on_wait=lambda text: progress.report("Prefect", "waiting", text),
            longest_pause=_LONGEST_PAUSE,
            passes=_away,
            what="Prefect server",
        )

    send.outlasts = True  # type: ignore[attr-defined]
    Client.send = send  # type: ignore[method-assign]


def _away(error: Exception) -> bool:
    import httpx

    if isinstance(error, httpx.HTTPStatusError):
        return error.response.status_code in _PASSING
    return isinstance(error, httpx.TransportError)


@contextlib.contextmanager
def shown(what: str) -> Iterator[None]:
    """For artifacts and progress in the Prefect UI: an error in the block is logged as a warning, and that is all."""
    from prefect.logging import get_logger
    from prefect.settings import PREFECT_CLIENT_MAX_RETRIES, temporary_settings

    token = _waits.set(False)
    try:
        with temporary_settings({PREFECT_CLIENT_MAX_RETRIES: _TRIES}):
            yield
    except Exception as error:  # whatever it is, the work matters more
        get_logger("mlebench").warning("%s is not shown in the Prefect UI: %s", what, explain(error))
    finally:
        _waits.reset(token)
