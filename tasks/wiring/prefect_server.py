"""Prefect's server and worker may be away: requests wait for the server, and output goes to a file.

Errors of what is only shown in the UI do not fail the work.
"""

from __future__ import annotations

import contextlib
import functools
import os
import ssl
import stat
import sys
import time
from collections.abc import Callable, Iterator
from contextvars import ContextVar
from pathlib import Path
from typing import Any

from common import progress
from common.causes import explain, retrying
from common.settings import get_settings

_FLOW_RUN = "PREFECT__FLOW_RUN_ID"
"""Set by Prefect's workers for the processes of flow runs."""
_KEPT_LOG_SECONDS = 30 * 86400.0

_RETRIED_STATUSES = (502, 503, 504)  # of a proxy before the server; 500 is a permanent error of the server itself
_MAX_PAUSE_SECONDS = 15.0
_CLIENT_RETRIES = 2
"""Retries of Prefect's clients, for a busy server. `make_requests_wait` repeats requests that have to arrive."""
_waits: ContextVar[bool] = ContextVar("waits for the server", default=True)


_temporary: str | None = None
"""The address of the temporary server of this process."""


def set_temporary(api_url: str | None) -> None:
    """Note that the server at this address ends with this process; None: there is no such server."""
    global _temporary
    _temporary = api_url


def served() -> bool:
    """Whether a Prefect server is configured. The temporary server of a command does not count: no user sees it."""
    from prefect.settings import get_current_settings

    return (get_current_settings().api.url or None) not in (None, _temporary)


def asks_for_login(error: Exception) -> bool:
    """Whether the error says that the server refuses the login of PREFECT_API_AUTH_STRING, or that there is none."""
    status = getattr(getattr(error, "response", None), "status_code", None)
    return type(error).__name__ == "PrefectHTTPStatusError" and status == 401


def wait_for_server() -> None:
    """Make this flow independent of its worker and of outages of the server. Every flow calls this first. Idempotent.

    Output of the process goes to a file, see `log_to_file`. Requests to the server wait, see `make_requests_wait`.
    """
    log_to_file()
    make_requests_wait()
    share_certificates()


def make_requests_wait() -> None:
    """Make this process' requests to a Prefect server wait until it answers, for MLEBENCH_PATIENCE seconds.

    Prefect's own retries last a minute, and there are none for the first request of a client: a flow would end with the
    next change of its state. Requests do not wait for a temporary server: it is a child of this process and does not
    come back.
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
        patience = get_settings().patience
        # A server that accepts a request and never answers it must not take longer than one that is away.
        max_request_seconds = max(patience / (1 + _CLIENT_RETRIES), 1.0)
        timeouts = request.extensions.get("timeout", {})
        request.extensions["timeout"] = {
            name: min(seconds or max_request_seconds, max_request_seconds) for name, seconds in timeouts.items()
        }
        with _few_retries(), progress.waits("Prefect") as waiting:
            return retrying(
                once,
                seconds=patience,
                on_wait=waiting,
                max_pause_seconds=_MAX_PAUSE_SECONDS,
                passes=_away,
                what="Prefect server",
            )

    send.outlasts = True  # type: ignore[attr-defined]
    Client.send = send  # type: ignore[method-assign]


def require_server() -> None:
    """Wait until the configured Prefect server answers, before a command begins a flow on it."""
    from prefect import get_client

    make_requests_wait()
    with get_client(sync_client=True) as client:
        client.hello().raise_for_status()


def share_certificates() -> None:
    """Make all clients of a Prefect server in this process share the trusted certificates, read once. Idempotent.

    Prefect makes a client for each flow run, task run and artifact, and reads the file of certificates for each, also
    where the server's address begins with `http:`. That takes 40 ms, most of the time of many requests.
    """
    from prefect.client.orchestration import PrefectClient, SyncPrefectClient
    from prefect.settings import PREFECT_API_SSL_CERT_FILE, PREFECT_API_TLS_INSECURE_SKIP_VERIFY

    def sharing(original: Callable[..., None]) -> Callable[..., None]:
        @functools.wraps(original)
        def init(self: Any, *args: Any, httpx_settings: dict[str, Any] | None = None, **options: Any) -> None:
            client_settings = dict(httpx_settings or {})
            if "verify" not in client_settings and not PREFECT_API_TLS_INSECURE_SKIP_VERIFY.value():
                client_settings["verify"] = trusted(PREFECT_API_SSL_CERT_FILE.value())
            original(self, *args, httpx_settings=client_settings, **options)

        init.shares = True  # type: ignore[attr-defined]
        return init

    for client in (PrefectClient, SyncPrefectClient):
        if not hasattr(client.__init__, "shares"):
            client.__init__ = sharing(client.__init__)  # type: ignore[method-assign]


@functools.cache
def trusted(file: str | None) -> ssl.SSLContext:
    """The certificates of a file, as Prefect's clients trust them; None: of the authorities that everyone trusts."""
    import certifi

    return ssl.create_default_context(cafile=file or certifi.where())


def _away(error: Exception) -> bool:
    import httpx

    if isinstance(error, httpx.HTTPStatusError):
        return error.response.status_code in _RETRIED_STATUSES
    return isinstance(error, httpx.TransportError)


@contextlib.contextmanager
def shown(what: str) -> Iterator[None]:
    """For artifacts and progress in the Prefect UI: an error in the block is only logged as a warning."""
    from prefect.logging import get_logger

    token = _waits.set(False)
    try:
        with _few_retries():
            yield
    except Exception as error:  # no error of the UI may fail the work
        get_logger("mlebench").warning("%s is not shown in the Prefect UI: %s", what, explain(error))
    finally:
        _waits.reset(token)


@contextlib.contextmanager
def _few_retries() -> Iterator[None]:
    """Prefect's clients give up early in the block.

    `temporary_settings` would validate all of Prefect's settings anew, which takes 70 ms, and progress is shown often.
    """
    from prefect.context import SettingsContext, get_settings_context

    context = get_settings_context()
    own = context.settings.client
    client = own.model_copy(update={"max_retries": min(own.max_retries, _CLIENT_RETRIES)})
    settings = context.settings.model_copy(update={"client": client})
    with SettingsContext(profile=context.profile, settings=settings):
        yield


def log_to_file() -> None:
    """Make this process write to `logs/<flow run>.log` below MLEBENCH_SCRATCH instead of to its worker. Idempotent.

    A worker reads the output of its flow runs through a pipe. If the worker is killed, the pipe is broken, and the next
    line that Prefect logs would end the process. The log is in the Prefect UI nevertheless.
    """
    if _FLOW_RUN not in os.environ or not stat.S_ISFIFO(os.fstat(2).st_mode):
        return
    folder = get_settings().scratch / "logs"
    folder.mkdir(parents=True, exist_ok=True)
    _remove_old(folder)
    log = os.open(folder / f"{os.environ[_FLOW_RUN]}.log", os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
    for stream in (sys.stdout, sys.stderr):
        stream.flush()
    for descriptor in (1, 2):
        os.dup2(log, descriptor)
    os.close(log)


def _remove_old(folder: Path) -> None:
    for path in folder.glob("*.log"):
        try:
            if time.time() - path.stat().st_mtime > _KEPT_LOG_SECONDS:
                path.unlink()
        except FileNotFoundError:  # removed by another flow run
            continue
