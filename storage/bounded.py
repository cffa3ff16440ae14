"""Requests to S3 that end, whatever the server does.

A client of aiobotocore waits for an answer with a time limit, which begins once the whole request is sent. Before it
sends what it uploads, it waits for the server's consent, and while it sends, for the server to take it, without a
limit: a server that accepts connections and then does nothing would hold up a run forever.
"""

from __future__ import annotations

import asyncio
from functools import cache
from typing import Any

SLOWEST = 10_000
"""Bytes a second. A request that is sent more slowly counts as not answered."""


def bounded_session(**options: Any) -> Any:
    """A session of aiobotocore whose requests have a time limit: for `http_session_cls` of its `AioConfig`."""
    return _session_class()(**options)


@cache
def _session_class() -> type[Any]:
    from aiobotocore.httpsession import AIOHTTPSession  # takes a second, and is of no use without S3
    from botocore.exceptions import ReadTimeoutError

    class BoundedSession(AIOHTTPSession):
        async def send(self, request: Any) -> Any:
            """Send a request; returns once an answer has begun. Raises `ReadTimeoutError` as for a late answer."""
            size = int(request.headers.get("Content-Length") or 0)
            seconds = self._timeout.sock_connect + self._timeout.sock_read + size / SLOWEST
            try:
                return await asyncio.wait_for(super().send(request), seconds)
            except TimeoutError:
                raise ReadTimeoutError(endpoint_url=request.url) from None

    return BoundedSession
