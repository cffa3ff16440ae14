"""Check requests to an HTTP server on the loopback: it answers those that are meant for it and have its credential.

Every page that a browser shows can send requests to servers of the same machine, and so can all users of the machine.
The name in `Host` identifies a page whose own name resolves to this machine (DNS rebinding), `Origin` and
`Sec-Fetch-Site` identify pages of other servers, and the credential (basic authentication) excludes everybody else.
"""

from __future__ import annotations

import base64
import contextlib
import hmac
import secrets
import socket
import tempfile
from collections.abc import Awaitable, Callable, Collection, Iterable
from pathlib import Path
from typing import Any


def _loopback() -> str:
    """The address of the loopback: that of IPv6 only where there is no other, because browsers are told it, too."""
    with contextlib.suppress(OSError), socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return "127.0.0.1"
    return "::1"


HOST = _loopback()
"""The address at which our servers listen: other machines must not reach them."""
USER = "mlebench"
_LOOPBACK_NAMES = ("127.0.0.1", "localhost", "[::1]")
_NAVIGATION = {"sec-fetch-mode": "navigate", "sec-fetch-dest": "document"}
_Send = Callable[[dict[str, Any]], Awaitable[None]]


def names(port: int, further: Iterable[str] = ()) -> frozenset[str]:
    """The values that `Host` may have for a server on this port of the loopback; `further` are NAME or NAME:PORT.

    >>> sorted(names(80, ["Prefect.example.org"]))
    ['127.0.0.1', '127.0.0.1:80', '[::1]', '[::1]:80', 'localhost', 'localhost:80', 'prefect.example.org']
    """
    own_names = {f"{name}:{port}" for name in _LOOPBACK_NAMES}
    if port == 80:  # browsers leave this port out
        own_names |= set(_LOOPBACK_NAMES)
    return frozenset(own_names | {name.strip().lower() for name in further})


def refusal(
    method: str, headers: Iterable[tuple[str, str]], known: Collection[str], any_host: bool = False
) -> str | None:
    """Why a request is refused whatever its credential; None if it may be answered.

    Args:
        method: method of the request; pages of other servers may only open (GET) a page in a window.
        headers: all of its headers.
        known: `names` of the server.
        any_host: whether `Host` is not checked: to a server of another name, pages post with that name in `Origin`.
    """
    values: dict[str, list[str]] = {}
    for name, value in headers:
        values.setdefault(name.lower(), []).append(value.strip().lower())
    host, origins = values.get("host", []), values.get("origin", [])
    if not any_host and (len(host) != 1 or host[0] not in known):
        return "its Host is no name of this server; MLEBENCH_SERVER_HOSTS lists further ones"
    for origin in origins:
        scheme, _, server_name = origin.partition("://")
        if scheme not in ("http", "https") or server_name not in known:
            return "it comes from a page of another server"
    if not origins and values.get("sec-fetch-site", ["none"])[0] in ("cross-site", "same-site"):
        opens_page = all(values.get(name) == [value] for name, value in _NAVIGATION.items())
        if method not in ("GET", "HEAD") or not opens_page:
            return "it comes from a page of another server"
    return None


def listen(port: int = 0, host: str = HOST) -> socket.socket:
    """A listening socket for a child process (`pass_fds`); port 0 is any free port. Raises `OSError` if it is taken.

    Otherwise, another user's program could listen on the port before our server does, and receive the logins of its
    clients. Requests to a socket that is open already wait for our server.
    """
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    return socket.create_server((host, port), family=family, backlog=2048)  # as uvicorn's


def address(port: int, host: str = HOST) -> str:
    """Host and port, as in URLs.

    >>> address(80, "127.0.0.1"), address(80, "::1")
    ('127.0.0.1:80', '[::1]:80')
    """
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def origin(port: int) -> str:
    """The URL of one of our servers on this machine."""
    return f"http://{address(port)}"


def new_credential() -> str:
    """A new random login, USER:PASSWORD."""
    return f"{USER}:{secrets.token_urlsafe(24)}"


def basic(credential: str) -> str:
    """The header `Authorization` of a login."""
    return "Basic " + base64.b64encode(credential.encode()).decode()


def authorized(header: str | None, credential: str) -> bool:
    """Whether this header `Authorization` is that of the login."""
    return hmac.compare_digest((header or "").encode(), basic(credential).encode())


def write_private(path: Path, text: str) -> None:
    """Write a file that only this user can read, atomically: it never has other permissions or half of its content."""
    with tempfile.NamedTemporaryFile("w", dir=path.parent, prefix=f".{path.name}-", delete=False) as file:  # mode 0600
        file.write(text)
    Path(file.name).replace(path)


class Guard:
    """An ASGI application that refuses requests by `refusal`, web sockets included.

    Args:
        app: answers the requests that are not refused.
        known: `names` of the server.
        any_host: as for `refusal`.
    """

    def __init__(self, app: Any, known: Collection[str], any_host: bool = False) -> None:
        self._app, self._known, self._any_host = app, known, any_host

    async def __call__(self, scope: Any, receive: Any, send: _Send) -> None:
        """Answer a request, or have the application answer it."""
        if scope["type"] in ("http", "websocket"):
            headers = [(name.decode("latin-1"), value.decode("latin-1")) for name, value in scope["headers"]]
            if reason := refusal(scope.get("method", "GET"), headers, self._known, self._any_host):
                await _refuse(scope["type"], reason, send)
                return
        await self._app(scope, receive, send)


async def _refuse(kind: str, reason: str, send: _Send) -> None:
    if kind == "websocket":  # before it is accepted: the server answers 403
        await send({"type": "websocket.close", "code": 1008})
        return
    headers = [(b"content-type", b"text/plain; charset=utf-8"), (b"x-content-type-options", b"nosniff")]
    await send({"type": "http.response.start", "status": 403, "headers": headers})
    await send({"type": "http.response.body", "body": f"This request is refused: {reason}.\n".encode()})
