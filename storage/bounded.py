"""Requests to S3 with a time limit, whatever the server does.

A client of aiobotocore waits for an answer with a time limit, which begins once the whole request is sent. There is no
limit for sending: the client waits until the server agrees to receive an upload, and until it has received the data. A
server that accepts connections and then does nothing would block a run forever.

botocore retries requests without an answer, and s3fs would repeat all of these retries five times. A request without an
answer therefore raises an error that only botocore retries.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any

MIN_BYTES_PER_SECOND = 10_000
"""A request that is sent more slowly counts as not answered."""


def bounded_session(**options: Any) -> Any:
    """A session of aiobotocore whose requests have a time limit: for `http_session_cls` of its `AioConfig`."""
    return _session_class()(**options)


def sending(headers: Mapping[str, Any]) -> float:
    """The longest time in seconds in which the body of a request with these headers may be sent.

    >>> sending({"Content-Length": "20000"}), sending({})
    (2.0, 0.0)
    >>> sending({"Transfer-Encoding": "chunked", "X-Amz-Decoded-Content-Length": b"20000"})  # with a checksum behind it
    2.0
    """
    return int(headers.get("Content-Length") or headers.get("X-Amz-Decoded-Content-Length") or 0) / MIN_BYTES_PER_SECOND


@cache
def _session_class() -> type[Any]:
    import asyncio

    from aiobotocore.httpsession import AIOHTTPSession  # importing it takes a second, and is only needed for S3
    from botocore.exceptions import ReadTimeoutError

    from storage.unanswered import Unanswered

    class BoundedSession(AIOHTTPSession):
        def __init__(self, timeout: tuple[float, float], **options: Any) -> None:
            """`timeout` has the seconds for a connection and for an answer, from the configuration of a client."""
            super().__init__(timeout=timeout, **options)
            self._seconds = sum(timeout)

        async def _create_connector(self, proxy_url: str | None) -> Any:
            connector = await super()._create_connector(None if _is_socks(proxy_url) else proxy_url)
            return _socks_connector(str(proxy_url), connector) if _is_socks(proxy_url) else connector

        async def _get_session(self, proxy_url: str | None) -> Any:
            session = await super()._get_session(proxy_url)
            return _Connected(session) if _is_socks(proxy_url) else session

        async def send(self, request: Any) -> Any:
            """Send a request; returns once an answer has begun. Raises `Unanswered`, also for a late answer."""
            try:
                return await asyncio.wait_for(super().send(request), self._seconds + sending(request.headers))
            except (TimeoutError, ReadTimeoutError):
                raise Unanswered(endpoint_url=request.url) from None

    return BoundedSession


class _Connected:
    """A session whose connector knows the proxy, so that its requests do not name it."""

    def __init__(self, session: Any) -> None:
        self._session = session

    def request(self, method: str, *, proxy: str, proxy_headers: Any, **options: Any) -> Any:
        return self._session.request(method, **options)


def _is_socks(proxy_url: str | None) -> bool:
    """Whether a proxy is one of SOCKS. botocore takes its URL for a host name, and puts `http://` before it."""
    return bool(proxy_url and proxy_url.removeprefix("http://").startswith("socks"))


def _socks_connector(proxy_url: str, plain: Any) -> Any:
    """A connector with the certificates and limits of a plain one whose connections are made by a SOCKS proxy."""
    from urllib.parse import unquote, urlsplit

    from aiohttp_socks import ProxyConnector, ProxyType

    proxy = urlsplit(proxy_url.removeprefix("http://"))
    return ProxyConnector(
        proxy_type=ProxyType.SOCKS5,
        host=str(proxy.hostname),
        port=proxy.port or 1080,
        username=proxy.username and unquote(proxy.username),
        password=proxy.password and unquote(proxy.password),
        rdns=proxy.scheme == "socks5h",
        ssl=plain._ssl,
        limit=plain.limit,
    )
