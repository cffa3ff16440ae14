"""One request on its way to a provider and back, read to its end even when the agent hangs up.

Otherwise an agent that hangs up before the end, where the usage is reported, would ask for nothing.
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
CREDENTIALS = "the provider refused the gateway's credentials; whoever runs this benchmark has to mend its settings"


class Trouble(Exception):
    """The provider gave no usable answer; `status` is as in `Entry.status`."""

    def __init__(self, status: str, message: str) -> None:
        super().__init__(message)
        self.status = status


class Relay:
    """The answer to one request: status and headers first, then the body in pieces."""

    def __init__(
        self, client: httpx.AsyncClient, request: httpx.Request, entry: Entry, api: Api, redactor: Redactor
    ) -> None:
        """Prepare; nothing is sent yet."""
        self.status, self.headers = 0, dict[str, str]()
        self.transcript = bytearray()
        self._client, self._request, self._entry, self._api, self._redactor = client, request, entry, api, redactor
        self._pieces: asyncio.Queue[bytes | None] = asyncio.Queue()
        self._begun = asyncio.Event()
        self._trouble: Trouble | None = None
        self._listening = True
        self.drop_usage_event = False
        """Whether the usage was asked for by the gateway and not by the agent, who may not expect it."""

    async def run(self, seconds: float) -> None:
        """Carry the request out, to the end of the answer; the entry then says how it went."""
        try:
            async with asyncio.timeout(seconds):
                await self._carry_out()
        except Trouble as trouble:
            self._fail(trouble)
        except (TimeoutError, httpx.ReadTimeout, httpx.WriteTimeout):
            self._fail(Trouble("timeout", "the provider did not answer in time"))
        except httpx.HTTPError as error:
            logger.warning("provider %s: %s", self._entry.provider, type(error).__name__)
            began = self.status != 0
            self._fail(
                Trouble(
                    "cut" if began else "unreachable",
                    "the provider's answer broke off" if began else "the provider cannot be reached",
                )
            )
        finally:
            self._begun.set()
            self._pieces.put_nowait(None)

    async def begin(self) -> None:
        """Wait for status and headers. Raises `Trouble` when there will be none."""
        await self._begun.wait()
        if self.status == 0:
            raise self._trouble or Trouble("cut", "the gateway is closing")

    async def pieces(self) -> AsyncIterator[bytes]:
        """The body as it comes. Raises `Trouble` when it breaks off."""
        try:
            while (piece := await self._pieces.get()) is not None:
                yield piece
            if self._trouble is not None:
                raise self._trouble
        finally:
            self._listening = False

    def _fail(self, trouble: Trouble) -> None:
        self._trouble = trouble
        self._entry.status, self._entry.message = trouble.status, str(trouble)

    def _begin(self, status: int, headers: httpx.Headers) -> None:
        self.status = self._entry.http_status = status
        self.headers = headers_to_agent(dict(headers))
        self._begun.set()

    def _hand_on(self, piece: bytes) -> None:
        if len(self.transcript) < TRANSCRIPT_BYTES:
            self.transcript += piece
        if self._listening:
            self._pieces.put_nowait(piece)

    async def _carry_out(self) -> None:
        sent = len(self._request.content)
        self._entry.usage = Usage(estimate(sent), 0, estimated=True)  # should it break off
        try:
            response = await self._client.send(self._request, stream=True)
        except (httpx.ConnectError, httpx.ConnectTimeout, httpx.PoolTimeout):
            self._entry.usage = Usage()
            raise
        try:
            if response.status_code in (401, 407) or 300 <= response.status_code < 400:
                self._entry.usage = Usage()
                logger.error("provider %s answered %d: %s", self._entry.provider, response.status_code, CREDENTIALS)
                raise Trouble("credentials", CREDENTIALS)
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
                raise Trouble("cut", "the provider's answer is too large")
        failed = response.status_code >= 400
        self._entry.status = "error" if failed else "ok"
        if failed:
            self._entry.usage = Usage()
        else:
            self._entry.usage = reported(self._api, _object(content).get("usage")) or Usage(
                estimate(sent), estimate(len(content)), estimated=True
            )
        self._hand_on(self._redactor.hide(bytes(content), error=failed))
        self._begin(response.status_code, response.headers)

    async def _relay_stream(self, response: httpx.Response, sent: int) -> None:
        meter, rest, total, blank_too = StreamMeter(self._api), b"", 0, False
        self._begin(response.status_code, response.headers)
        try:
            async for chunk in response.aiter_bytes():
                *lines, rest = (rest + chunk).split(b"\n")
                total += len(chunk)
                if total > ANSWER_BYTES or len(rest) > LINE_BYTES:
                    raise Trouble("cut", "the provider's answer is too large")
                kept = []
                for line in lines:
                    if meter.read(line) and self.drop_usage_event:
                        blank_too = True
                    elif not (blank_too and not line.strip()):
                        kept.append(line + b"\n")
                        blank_too = False
                if kept:
                    self._hand_on(self._redactor.hide(b"".join(kept)))
            if rest:
                meter.read(rest)
                self._hand_on(self._redactor.hide(rest))
            self._entry.status = "ok"
        finally:
            self._entry.usage = meter.usage(sent)


def _object(content: bytearray) -> dict[str, Any]:
    try:
        value = json.loads(content)
    except (ValueError, RecursionError):
        return {}
    return value if isinstance(value, dict) else {}
