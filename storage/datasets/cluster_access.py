"""Access to a Dask cluster: the certificate of its connections, and the login of its dashboard.

Schedulers and workers run the code of everybody who connects. Scheduler, workers and clients of a cluster have one
certificate, which is its own authority, and its key. A program with the key is a client, so the key is the login of the
cluster.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from tornado.httputil import HTTPHeaders, HTTPMessageDelegate, HTTPServerConnectionDelegate, ResponseStartLine

from common.guard import authorized, names, refusal, write_private

_CONFIGURATION_PREFIX = "DASK_DISTRIBUTED__COMM__"
"""Of the environment variables with Dask's configuration of connections."""


def write_certificate(path: Path) -> None:
    """Write a new certificate with its key, valid for a year, to a file that only this user can read."""
    from distributed.security import Security

    certificate = Security.temporary()
    write_private(path, certificate.tls_client_key + certificate.tls_client_cert)


def certificate_environment(path: Path) -> dict[str, str]:
    """The environment of Dask's programs and of clients that use the certificate in a file."""
    parts = [f"{role}__{part}" for role in ("SCHEDULER", "WORKER", "CLIENT") for part in ("CERT", "KEY")]
    files = dict.fromkeys([f"{_CONFIGURATION_PREFIX}TLS__{name}" for name in ("CA_FILE", *parts)], str(path))
    return {f"{_CONFIGURATION_PREFIX}REQUIRE_ENCRYPTION": "true", **files}


def certificate_security(path: Path) -> Any:
    """The `distributed.Security` of a client that uses the certificate in a file."""
    from distributed.security import Security

    file = str(path)
    return Security(require_encryption=True, tls_ca_file=file, tls_client_cert=file, tls_client_key=file)


class _Guarded(HTTPServerConnectionDelegate):
    """Tornado's application behind checks of the login, of the host name, and of the page that sends a request."""

    def __init__(self, server: Any, credential: str, further: Iterable[str]) -> None:
        self._app, self._credential, self._known = server.request_callback, credential, names(server.port, further)

    def start_request(self, server_conn: object, request_conn: Any) -> HTTPMessageDelegate:
        return _Request(self, self._app.start_request(server_conn, request_conn), request_conn)

    def refusal(self, start: Any, headers: HTTPHeaders) -> tuple[int, str] | None:
        """The status and the reason with which a request is refused; None if it is answered."""
        if reason := refusal(start.method, headers.get_all(), self._known):
            return 403, f"This request is refused: {reason}.\n"
        if start.path == "/health" or authorized(headers.get("Authorization"), self._credential):
            return None
        return 401, "The login is wrong.\n"


class _Request(HTTPMessageDelegate):
    def __init__(self, guard: _Guarded, app: Any, connection: Any) -> None:
        self._guard, self._app, self._connection = guard, app, connection

    def headers_received(self, start_line: Any, headers: HTTPHeaders) -> Any:
        refused = self._guard.refusal(start_line, headers)
        if refused is None:
            return self._app.headers_received(start_line, headers)
        self._app = HTTPMessageDelegate()  # receives the body, and does nothing
        status, reason = refused
        authentication = {"WWW-Authenticate": 'Basic realm="mlebench"'} if status == 401 else {}
        answer = HTTPHeaders({"Content-Type": "text/plain", "Content-Length": str(len(reason)), **authentication})
        self._connection.write_headers(ResponseStartLine("HTTP/1.1", status, ""), answer, reason.encode())
        self._connection.finish()
        return None

    def data_received(self, chunk: bytes) -> Any:
        return self._app.data_received(chunk)

    def finish(self) -> None:
        self._app.finish()

    def on_connection_close(self) -> None:
        self._app.on_connection_close()


def guard_dashboard(scheduler: Any, credential: str, further: Iterable[str] = ()) -> None:
    """Make the HTTP server of a scheduler require the login USER:PASSWORD, except for health checks.

    Args:
        scheduler: a `distributed.Scheduler` that has begun to listen.
        credential: the login.
        further: other names of the server than those of the loopback, NAME or NAME:PORT.
    """
    scheduler.http_server.request_callback = _Guarded(scheduler.http_server, credential, further)
