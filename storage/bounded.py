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

        async def send(self, request: Any) -> Any:
            """Send a request; returns once an answer has begun. Raises `Unanswered`, also for a late answer."""
            try:
                return await asyncio.wait_for(super().send(request), self._seconds + sending(request.headers))
            except (TimeoutError, ReadTimeoutError):
                raise Unanswered(endpoint_url=request.url) from None

    return BoundedSession
