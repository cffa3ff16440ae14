"""The gateway of one run: authentication, checks, selection of the provider, budget and logs."""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import re
import secrets
from pathlib import Path
from typing import Any

import httpx
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response, StreamingResponse
from starlette.routing import Route

from common.jsonlines import JsonLinesLog
from common.providers import Api, Provider
from sandbox.gateway import dialects
from sandbox.gateway.budget import BudgetTracker, Entry
from sandbox.gateway.dialects import ENDPOINTS, Endpoint, Problem
from sandbox.gateway.policy import GatewayPolicy
from sandbox.gateway.prices import cost_of, price_of
from sandbox.gateway.redact import Redactor
from sandbox.gateway.relay import Relay, UpstreamError
from sandbox.gateway.request import CompletionRequest, RequestRejected, read_request
from sandbox.gateway.tokens import Usage, estimate
from sandbox.limits import GIB

logger = logging.getLogger(__name__)

CONNECT_SECONDS = 15.0
_PROBLEMS: dict[str, Problem] = {"timeout": "timeout", "credentials": "account"}
_MODEL = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:@-]{0,199}")


class GatewayService:
    """An OpenAI- and Anthropic-compatible reverse proxy. Runs in the event loop of the run's services."""

    def __init__(self, policy: GatewayPolicy, folder: Path, token: str, since: str) -> None:
        """Continue the logs in `folder`, or start them.

        Args:
            policy: providers, prices, budget.
            folder: folder of `gateway.jsonl` and, if enabled, `transcripts.jsonl`.
            token: the agent's API key.
            since: ISO time from which on requests count towards the budget.
        """
        self.budget = BudgetTracker(folder, policy.budget, since)
        self.routes = [Route(path, self._complete, methods=["POST"]) for path in ENDPOINTS]
        self.routes += [Route(path, self._models, methods=["GET"]) for path in ("/v1/models", "/v1/models/{model}")]
        self._policy = policy
        self._token = token.encode()
        self._redactor = Redactor(policy.secrets())
        self._transcripts = JsonLinesLog(folder / "transcripts.jsonl", 2 * GIB) if policy.transcripts else None
        self._places = asyncio.Semaphore(policy.concurrent)
        self._under_way: set[asyncio.Task[None]] = set()
        self._client = httpx.AsyncClient(
            timeout=httpx.Timeout(policy.silence_seconds, connect=CONNECT_SECONDS, pool=None),
            limits=httpx.Limits(max_connections=None, max_keepalive_connections=policy.concurrent),
            headers={"user-agent": "mlebench-gateway"},
            follow_redirects=False,  # a redirect would send the key elsewhere
        )

    async def close(self) -> None:
        """Abort requests under way, log them, and close the connections."""
        for task in self._under_way:
            task.cancel()
        await asyncio.gather(*self._under_way, return_exceptions=True)
        await self._client.aclose()

    async def _complete(self, request: Request) -> Response:
        endpoint = ENDPOINTS[request.scope["path"]]
        return await self._handle(request, endpoint.api, endpoint)

    async def _models(self, request: Request) -> Response:
        api, model = dialects.api_of(request), request.path_params.get("model", "")
        if model and not _MODEL.fullmatch(model):
            return dialects.error(api, "missing", "there is no such model")
        path = ("/v1" if api == "anthropic" else "") + "/models" + (f"/{model}" if model else "")
        return await self._handle(request, api, Endpoint(api, path, "GET", free=True))

    async def _handle(self, request: Request, api: Api, endpoint: Endpoint) -> Response:
        """Handle a request; every error is returned in the format of the agent's client."""
        if not secrets.compare_digest(dialects.token_of(request).encode(), self._token):
            return dialects.error(api, "token", "this gateway only accepts the API key in the run's environment")
        try:
            return await self._pass_on(request, endpoint)
        except RequestRejected as rejected:
            return dialects.error(api, rejected.problem, str(rejected))
        except UpstreamError as failed:
            return dialects.error(api, _PROBLEMS.get(failed.status, "upstream"), str(failed))
        except ClientDisconnect:
            return Response(status_code=400)
        except Exception as error:  # its text may contain secrets
            logger.error("the LLM gateway failed: %s", type(error).__name__)  # noqa: TRY400
            return dialects.error(api, "upstream", "the gateway failed")

    async def _pass_on(self, request: Request, endpoint: Endpoint) -> Response:
        policy = self._policy
        if endpoint.method == "GET":
            completion = CompletionRequest({}, request.path_params.get("model", ""), stream=False, bytes=0)
        else:
            completion = await read_request(request, endpoint.api, policy.body_bytes, hosted_tools=policy.hosted_tools)
        found = policy.provider_for(endpoint.api, completion.model)
        if found is None:
            raise RequestRejected("missing", f"no provider serves the model {completion.model!r} here")
        name, provider = found
        entry = Entry(name, request.scope["path"], completion.model, completion.stream)
        price = None if endpoint.free else price_of(policy.prices, completion.model)
        if price is None and policy.budget.dollars is not None and not endpoint.free:
            known = ", ".join(sorted(policy.prices))
            raise RequestRejected(
                "missing",
                f"{completion.model!r} has no price here, and the budget is in dollars; models with a price: {known}",
            )
        upstream = self._client.build_request(
            endpoint.method,
            provider.base_url.rstrip("/") + endpoint.path,
            headers=dialects.headers_to_provider(request, provider),
            params={"beta": "true"} if request.query_params.get("beta") == "true" else None,
            content=json.dumps(_body(completion, endpoint, provider)).encode() if endpoint.method == "POST" else None,
        )
        relay = Relay(self._client, upstream, entry, endpoint.api, self._redactor)
        relay.drop_usage_event = completion.stream and not _wants_usage(completion.body)
        guess = Usage() if endpoint.free else Usage(estimate(completion.bytes), completion.output_tokens)
        task = asyncio.create_task(self._carry_out(relay, entry, completion, guess, free=endpoint.free))
        self._under_way.add(task)
        task.add_done_callback(self._done)
        return await self._answer(relay, task)

    async def _answer(self, relay: Relay, task: asyncio.Task[None]) -> Response:
        started = asyncio.create_task(relay.wait_for_headers())
        await asyncio.wait({started, task}, return_when=asyncio.FIRST_COMPLETED)
        if not started.done():
            started.cancel()
            task.result()  # raises
        await started
        return StreamingResponse(relay.body(), relay.status, relay.headers)

    async def _carry_out(
        self, relay: Relay, entry: Entry, completion: CompletionRequest, guess: Usage, *, free: bool
    ) -> None:
        """Check the budget, relay the request and log it, even if the agent disconnects."""
        async with self._places:
            if reached := self.budget.exhausted():
                self.budget.refuse(entry, reached[1])
                raise RequestRejected(*reached)
            price = price_of(self._policy.prices, completion.model)
            with self.budget.under_way(entry, guess.total, cost_of(guess, price)):
                try:
                    await relay.run(self._policy.request_seconds)
                finally:
                    entry.usage = Usage() if free else entry.usage
                    entry.cost_usd = cost_of(entry.usage, price) if entry.usage.total else 0.0
            if self._transcripts is not None:
                self._write_transcript(self._transcripts, entry, completion, relay)

    def _done(self, task: asyncio.Task[None]) -> None:
        self._under_way.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None and not isinstance(error, RequestRejected):
            logger.error("the LLM gateway failed: %s", type(error).__name__)

    def _write_transcript(
        self, transcripts: JsonLinesLog, entry: Entry, completion: CompletionRequest, relay: Relay
    ) -> None:
        response: Any = bytes(relay.transcript).decode("utf-8", "replace")
        if not entry.stream:
            with contextlib.suppress(ValueError):
                response = json.loads(response)
        record = {**entry.record(), "request": completion.body, "response": response}
        hidden = self._redactor.hide(json.dumps(record).encode())
        transcripts.append(json.loads(hidden))


def _wants_usage(body: dict[str, Any]) -> bool:
    options = body.get("stream_options")
    return isinstance(options, dict) and bool(options.get("include_usage"))


def _body(completion: CompletionRequest, endpoint: Endpoint, provider: Provider) -> dict[str, Any]:
    """The body to send. It asks for the usage where needed: OpenAI's chat streams report it only on demand."""
    chat = endpoint.path in ("/chat/completions", "/completions")
    if not (completion.stream and chat and provider.stream_usage):
        return completion.body
    options = completion.body.get("stream_options")
    options = {**(options if isinstance(options, dict) else {}), "include_usage": True}
    return {**completion.body, "stream_options": options}
