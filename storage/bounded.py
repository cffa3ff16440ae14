"""Requests to S3 that end, whatever the server does.

A client of aiobotocore waits for an answer with a time limit, which begins once the whole request is sent. Before it
sends what it uploads, it waits for the server's consent, and while it sends, for the server to take it, without a
limit: a server that accepts connections and then does nothing would hold up a run forever.

botocore tries again what was not answered, and s3fs would do all of that five times. So a request without an answer
raises an error that only botocore tries again.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any

MIN_BYTES_PER_SECOND = 10_000
"""Bytes a second. A request that is sent more slowly counts as not answered."""


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

    from aiobotocore.httpsession import AIOHTTPSession  # takes a second, and is of no use without S3
    from botocore.exceptions import ReadTimeoutError

    from storage.unanswered import Unanswered

    class BoundedSession(AIOHTTPSession):
        def __init__(self, timeout: tuple[float, float], **options: Any) -> None:
            """`timeout` are the seconds of a client's configuration, for a connection and for an answer."""
            super().__init__(timeout=timeout, **options)
            self._seconds = sum(timeout)

        async def send(self, request: Any) -> Any:
            """Send a request; returns once an answer has begun. Raises `Unanswered`, also for a late answer."""
            try:
                return await asyncio.wait_for(super().send(request), self._seconds + sending(request.headers))
            except (TimeoutError, ReadTimeoutError):
                raise Unanswered(endpoint_url=request.url) from None

    return BoundedSession
