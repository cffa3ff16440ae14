"""Relay one request to a provider and the response back. The response is read to its end even if the agent disconnects.

Otherwise, an agent could avoid being charged by disconnecting before the end, where the usage is reported. An agent
that stays connected and does not read is treated as one that has disconnected.
"""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import AsyncIterator
from typing import Any

import httpx

from common.providers import Api
from sandbox.gateway.budget import LoggedRequest
from sandbox.gateway.dialects import headers_to_agent
from sandbox.gateway.limits import MemoryLimitReached, ReservedMemory
from sandbox.gateway.redact import Redactor
from sandbox.gateway.tokens import StreamMeter, Usage, reported, tier_of, usage_in
from sandbox.limits import MIB

logger = logging.getLogger(__name__)

ANSWER_BYTES = 128 * MIB
FREE_ANSWER_BYTES = 8 * MIB
"""Maximum size of the answers to requests that cost nothing, such as the list of models."""
MAX_WAITING_CHUNKS = 64
"""Chunks of a stream that wait for the agent to read them."""
UNREAD_SECONDS = 60.0
"""Time after which an agent that reads nothing counts as disconnected."""
_MAYBE_BILLED = frozenset({408, 504, 524})
"""Statuses with which a proxy gives up on a request that the provider may finish, and bill."""
_REFUSED_KEY = b'"API_KEY_'
"""Beginning of the reason in Google's answer (status 400 or 403) to a key that is invalid or may not be used."""
PIECE_BYTES = 256 * 1024
LINE_BYTES = 16 * MIB
TRANSCRIPT_BYTES = 8 * MIB
CREDENTIALS = "the provider refused the gateway's credentials; the benchmark's operator has to correct the settings"


class UpstreamError(Exception):
    """The provider gave no usable response; `status` is as in `LoggedRequest.status`."""

    def __init__(self, status: str, message: str) -> None:
        super().__init__(message)
        self.status = status


class Relay:
    """The response to one request: first status and headers, then the body in chunks."""

    def __init__(
        self,
        client: httpx.AsyncClient,
        request: httpx.Request,
        entry: LoggedRequest,
        api: Api,
        redactor: Redactor,
        reserved: ReservedMemory,
    ) -> None:
        """`entry` has the most that the request can use, and keeps it unless the provider reports what it used."""
        self.status, self.headers = 0, dict[str, str]()
        self.transcript = bytearray()
        self._client, self._request, self._entry, self._api, self._redactor = client, request, entry, api, redactor
        self._reserved = reserved
        self._chunks: asyncio.Queue[bytes] = asyncio.Queue(MAX_WAITING_CHUNKS)
        self._ended = asyncio.Event()
        self._started = asyncio.Event()
        self._error: UpstreamError | None = None
        self._connected = True
        self.drop_usage_event = False
        """Whether to drop the event with the usage: the gateway requested it, and the agent may not expect it."""
        self.free = False

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
            answered = self.status != 0
            self._fail(
                UpstreamError(
                    "cut" if answered else "unreachable",
                    "the provider's response was cut off" if answered else "the provider cannot be reached",
                )
            )
        finally:
            self._started.set()
            self._ended.set()

    async def wait_for_headers(self) -> None:
        """Wait for status and headers. Raises `UpstreamError` if there are none."""
        await self._started.wait()
        if self.status == 0:
            raise self._error or UpstreamError("cut", "the gateway is closing")

    async def body(self) -> AsyncIterator[bytes]:
        """The body as it arrives. Raises `UpstreamError` if it is cut off."""
        ended = asyncio.create_task(self._ended.wait())
        try:
            while not (self._ended.is_set() and self._chunks.empty()):
                getting = asyncio.create_task(self._chunks.get())
                await asyncio.wait({getting, ended}, return_when=asyncio.FIRST_COMPLETED)
                if getting.done():
                    yield getting.result()
                else:
                    getting.cancel()
            if self._error is not None:
                raise self._error
        finally:
            ended.cancel()
            self._connected = False
            while not self._chunks.empty():  # so that a task that waits for space in the queue continues
                self._chunks.get_nowait()

    def _fail(self, error: UpstreamError) -> None:
        self._error = error
        self._entry.status, self._entry.message = error.status, str(error)

    def _start(self, status: int, headers: httpx.Headers) -> None:
        self.status = self._entry.http_status = status
        self.headers = headers_to_agent(dict(headers))
        self._started.set()

    async def _pass_on(self, chunk: bytes) -> None:
        if len(self.transcript) < TRANSCRIPT_BYTES:
            self.transcript += chunk
        if not self._connected:
            return
        try:
            async with asyncio.timeout(UNREAD_SECONDS):
                await self._chunks.put(chunk)
        except TimeoutError:
            self._connected = False
            self._error = UpstreamError("cut", "the response was not read in time")

    async def _carry_out(self) -> None:
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
                await self._relay_stream(response)
            else:
                await self._relay_whole(response)
        finally:
            await response.aclose()

    async def _relay_whole(self, response: httpx.Response) -> None:
        content, failed = bytearray(), response.status_code >= 400
        if failed and response.status_code not in _MAYBE_BILLED:
            self._entry.usage = Usage()
        async for chunk in response.aiter_bytes():
            content += chunk
            if len(content) > (FREE_ANSWER_BYTES if self.free or failed else ANSWER_BYTES):
                raise UpstreamError("cut", "the provider's response is too large")
            try:
                self._reserved.grow(2 * len(chunk))
            except MemoryLimitReached:
                raise UpstreamError("cut", "the responses under way take too much memory") from None
        if failed and self._api == "gemini" and _REFUSED_KEY in content:
            logger.error("provider %s answered %d: %s", self._entry.provider, response.status_code, CREDENTIALS)
            raise UpstreamError("credentials", CREDENTIALS)
        self._entry.status = "error" if failed else "ok"
        if not failed:
            answer = _object(content)
            self._entry.usage = reported(self._api, usage_in(answer)) or self._entry.usage
            self._entry.tier = tier_of(answer)
        redacted = self._redactor.hide(bytes(content), error=failed)
        self._start(response.status_code, response.headers)
        for start in range(0, len(redacted), PIECE_BYTES):
            await self._pass_on(redacted[start : start + PIECE_BYTES])

    async def _relay_stream(self, response: httpx.Response) -> None:
        meter, partial_line, total, blank_too = StreamMeter(self._api), b"", 0, False
        self._start(response.status_code, response.headers)
        try:
            async for chunk in response.aiter_bytes():
                *lines, partial_line = (partial_line + chunk).split(b"\n")
                total += len(chunk)
                if total > ANSWER_BYTES or len(partial_line) > LINE_BYTES:
                    raise UpstreamError("cut", "the provider's response is too large")
                forwarded = []
                for line in lines:
                    if meter.read(line) and self.drop_usage_event:
                        blank_too = True
                    elif not (blank_too and not line.strip()):
                        forwarded.append(line + b"\n")
                        blank_too = False
                if forwarded:
                    await self._pass_on(self._redactor.hide(b"".join(forwarded)))
            if partial_line:
                meter.read(partial_line)
                await self._pass_on(self._redactor.hide(partial_line))
            self._entry.status = "ok"
        finally:
            self._entry.usage, self._entry.tier = meter.usage() or self._entry.usage, meter.tier


def _object(content: bytearray) -> dict[str, Any]:
    try:
        value = json.loads(content)
    except (ValueError, RecursionError):
        return {}
    return value if isinstance(value, dict) else {}
