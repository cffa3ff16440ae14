"""A login for Dask's dashboard, which has none."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from tornado.httputil import HTTPHeaders, HTTPMessageDelegate, HTTPServerConnectionDelegate, ResponseStartLine

from common.guard import authorized, names, refusal


class _Guarded(HTTPServerConnectionDelegate):
    """Tornado's application, asked only what comes with the login, from pages and to names of this machine."""

    def __init__(self, server: Any, credential: str, further: Iterable[str]) -> None:
        self._app, self._credential, self._known = server.request_callback, credential, names(server.port, further)

    def start_request(self, server_conn: object, request_conn: Any) -> HTTPMessageDelegate:
        return _Request(self, self._app.start_request(server_conn, request_conn), request_conn)

    def refusal(self, start: Any, headers: HTTPHeaders) -> tuple[int, str] | None:
        """The status and the reason with which a request is refused; None: it is answered."""
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
        self._app = HTTPMessageDelegate()  # takes the rest, and does nothing
        status, reason = refused
        more = {"WWW-Authenticate": 'Basic realm="mlebench"'} if status == 401 else {}
        answer = HTTPHeaders({"Content-Type": "text/plain", "Content-Length": str(len(reason)), **more})
        self._connection.write_headers(ResponseStartLine("HTTP/1.1", status, ""), answer, reason.encode())
        self._connection.finish()
        return None

    def data_received(self, chunk: bytes) -> Any:
        return self._app.data_received(chunk)

    def finish(self) -> None:
        self._app.finish()

    def on_connection_close(self) -> None:
        self._app.on_connection_close()


def guard(scheduler: Any, credential: str, further: Iterable[str] = ()) -> None:
    """Have the HTTP server of a scheduler ask for a login USER:PASSWORD, except when it is asked whether it lives.

    Args:
        scheduler: a `distributed.Scheduler` that has begun to listen.
        credential: the login.
        further: names besides those of the loopback that lead to it, NAME or NAME:PORT.
    """
    scheduler.http_server.request_callback = _Guarded(scheduler.http_server, credential, further)
