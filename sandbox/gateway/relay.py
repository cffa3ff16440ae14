"""Relay one request to a provider and the response back, which is read to its end even if the agent disconnects.

Otherwise an agent could avoid being charged by disconnecting before the end, where the usage is reported.
"""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import AsyncIterator
from typing import Any

import httpx

from common.providers import Api
from sandbox.gateway.budget import Entry
from sandbox.gateway.dialects import headers_to_agent
from sandbox.gateway.redact import Redactor
from sandbox.gateway.tokens import StreamMeter, Usage, estimate, reported
from sandbox.limits import MIB

logger = logging.getLogger(__name__)

ANSWER_BYTES = 128 * MIB
LINE_BYTES = 16 * MIB
TRANSCRIPT_BYTES = 8 * MIB
CREDENTIALS = "the provider refused the gateway's credentials; the benchmark's operator has to correct the settings"


class UpstreamError(Exception):
    """The provider gave no usable response; `status` is as in `Entry.status`."""

    def __init__(self, status: str, message: str) -> None:
        super().__init__(message)
        self.status = status


class Relay:
    """The response to one request: first status and headers, then the body in chunks."""

    def __init__(
        self, client: httpx.AsyncClient, request: httpx.Request, entry: Entry, api: Api, redactor: Redactor
    ) -> None:
        self.status, self.headers = 0, dict[str, str]()
        self.transcript = bytearray()
        self._client, self._request, self._entry, self._api, self._redactor = client, request, entry, api, redactor
        self._chunks: asyncio.Queue[bytes | None] = asyncio.Queue()
        self._started = asyncio.Event()
        self._error: UpstreamError | None = None
        self._connected = True
        self.drop_usage_event = False
        """Whether to drop the event with the usage: the gateway requested it, and the agent may not expect it."""

    async def run(self, seconds: float) -> None:
        """Send the request and read the response to its end; the entry then has the outcome."""
        try:
            async with asyncio.timeout(seconds):
                await self._carry_out()
        except UpstreamError as error:
            self._fail(error)
        except (TimeoutError, httpx.ReadTimeout, httpx.WriteTimeout):
            self._fail(UpstreamError("timeout", "the provider did not answer in time"))
        except httpx.HTTPError as error:
            logger.warning("provider %s: %s", self._entry.provider, type(error).__name__)
            began = self.status != 0
            self._fail(
                UpstreamError(
                    "cut" if began else "unreachable",
                    "the provider's response was cut off" if began else "the provider cannot be reached",
                )
            )
        finally:
            self._started.set()
            self._chunks.put_nowait(None)

    async def wait_for_headers(self) -> None:
        """Wait for status and headers. Raises `UpstreamError` if there are none."""
        await self._started.wait()
        if self.status == 0:
            raise self._error or UpstreamError("cut", "the gateway is closing")

    async def body(self) -> AsyncIterator[bytes]:
        """The body as it arrives. Raises `UpstreamError` if it is cut off."""
        try:
            while (chunk := await self._chunks.get()) is not None:
                yield chunk
            if self._error is not None:
                raise self._error
        finally:
            self._connected = False

    def _fail(self, error: UpstreamError) -> None:
        self._error = error
        self._entry.status, self._entry.message = error.status, str(error)

    def _start(self, status: int, headers: httpx.Headers) -> None:
        self.status = self._entry.http_status = status
        self.headers = headers_to_agent(dict(headers))
        self._started.set()

    def _pass_on(self, chunk: bytes) -> None:
        if len(self.transcript) < TRANSCRIPT_BYTES:
            self.transcript += chunk
        if self._connected:
            self._chunks.put_nowait(chunk)

    async def _carry_out(self) -> None:
        sent = len(self._request.content)
        self._entry.usage = Usage(estimate(sent), 0, estimated=True)  # in case it is cut off
        try:
            response = await self._client.send(self._request, stream=True)
        except (httpx.ConnectError, httpx.ConnectTimeout, httpx.PoolTimeout):
            self._entry.usage = Usage()
            raise
        try:
            if response.status_code in (401, 407) or 300 <= response.status_code < 400:
                self._entry.usage = Usage()
                logger.error("provider %s answered %d: %s", self._entry.provider, response.status_code, CREDENTIALS)
                raise UpstreamError("credentials", CREDENTIALS)
            streams = response.headers.get("content-type", "").startswith("text/event-stream")
            if response.status_code == 200 and streams:
                await self._relay_stream(response, sent)
            else:
                await self._relay_whole(response, sent)
        finally:
            await response.aclose()

    async def _relay_whole(self, response: httpx.Response, sent: int) -> None:
        content = bytearray()
        async for chunk in response.aiter_bytes():
            content += chunk
            if len(content) > ANSWER_BYTES:
                raise UpstreamError("cut", "the provider's response is too large")
        failed = response.status_code >= 400
        self._entry.status = "error" if failed else "ok"
        if failed:
            self._entry.usage = Usage()
        else:
            self._entry.usage = reported(self._api, _object(content).get("usage")) or Usage(
                estimate(sent), estimate(len(content)), estimated=True
            )
        self._pass_on(self._redactor.hide(bytes(content), error=failed))
        self._start(response.status_code, response.headers)

    async def _relay_stream(self, response: httpx.Response, sent: int) -> None:
        meter, rest, total, blank_too = StreamMeter(self._api), b"", 0, False
        self._start(response.status_code, response.headers)
        try:
            async for chunk in response.aiter_bytes():
                *lines, rest = (rest + chunk).split(b"\n")
                total += len(chunk)
                if total > ANSWER_BYTES or len(rest) > LINE_BYTES:
                    raise UpstreamError("cut", "the provider's response is too large")
                kept = []
                for line in lines:
                    if meter.read(line) and self.drop_usage_event:
                        blank_too = True
                    elif not (blank_too and not line.strip()):
                        kept.append(line + b"\n")
                        blank_too = False
                if kept:
                    self._pass_on(self._redactor.hide(b"".join(kept)))
            if rest:
                meter.read(rest)
                self._pass_on(self._redactor.hide(rest))
            self._entry.status = "ok"
        finally:
            self._entry.usage = meter.usage(sent)


def _object(content: bytearray) -> dict[str, Any]:
    try:
        value = json.loads(content)
    except (ValueError, RecursionError):
        return {}
    return value if isinstance(value, dict) else {}
