"""The gateway of one run: authentication, checks, selection of the provider, budget and logs."""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import re
import secrets
import ssl
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from typing import Any

import httpx
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route

from common import plain_json
from common.jsonlines import JsonLinesLog
from common.providers import Api, Provider
from sandbox.gateway import dialects
from sandbox.gateway.budget import BudgetTracker, LoggedRequest, OverBudget
from sandbox.gateway.dialects import ENDPOINTS, Endpoint, Problem
from sandbox.gateway.limits import MemoryLimit, MemoryLimitReached, Rate, ReservedMemory
from sandbox.gateway.max_usage import max_usage
from sandbox.gateway.policy import GatewayPolicy
from sandbox.gateway.prices import PriceList, Rates
from sandbox.gateway.redact import Redactor
from sandbox.gateway.relay import Relay, UpstreamError
from sandbox.gateway.request import (
    MEMORY_WAIT_SECONDS,
    CompletionRequest,
    RequestRejected,
    check,
    declared_size,
    model_of,
    read_body,
)
from sandbox.gateway.tokens import Usage
from sandbox.limits import GIB

logger = logging.getLogger(__name__)

CONNECT_SECONDS = 15.0
_PROBLEMS: dict[str, Problem] = {"timeout": "timeout", "credentials": "account"}
_TOKEN = "this gateway only accepts the API key in the run's environment"  # noqa: S105
_GEMINI_MODEL = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,199}")
_MODEL = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:@-]{0,199}")


@dataclass
class _Exchange:
    """One request under way, with its provider and its prices."""

    endpoint: Endpoint
    completion: CompletionRequest
    entry: LoggedRequest
    provider: Provider
    rates: Rates | None
    headers: dict[str, str]
    beta: bool
    reserved: ReservedMemory
    relay: asyncio.Future[Relay]
    """Done as soon as the request is sent."""


class GatewayService:
    """A reverse proxy with the APIs of OpenAI, Anthropic and Gemini. Runs in the event loop of the run's services."""

    def __init__(self, policy: GatewayPolicy, folder: Path, token: str, since: str) -> None:
        """Continue the logs in `folder`, or start them.

        Args:
            policy: providers, prices, budget.
            folder: folder of `gateway.jsonl` and, if enabled, `transcripts.jsonl`.
            token: the agent's API key.
            since: ISO time from which on requests count towards the budget.
        """
        self.budget = BudgetTracker(folder, policy.budget, since)
        self.routes = [
            Route(path, partial(self._complete, endpoint), methods=["POST"]) for path, endpoint in ENDPOINTS.items()
        ]
        self.routes += [Route(path, self._models, methods=["GET"]) for path in ("/v1/models", "/v1/models/{model}")]
        self.routes += [Route("/v1/budget", self._left, methods=["GET"])]
        self._policy = policy
        self._token = token.encode()
        self._redactor = Redactor(policy.secrets())
        self._transcripts = JsonLinesLog(folder / "transcripts.jsonl", 2 * GIB) if policy.transcripts else None
        self._prices = PriceList(policy.prices)
        self._concurrency = asyncio.Semaphore(policy.concurrent)
        self._memory = MemoryLimit(policy.memory_bytes)
        self._requests, self._tokens = Rate(policy.requests_per_minute), Rate(policy.tokens_per_minute)
        self._under_way: set[asyncio.Task[None]] = set()
        self._client = httpx.AsyncClient(
            verify=_certificates(),
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

    async def _complete(self, endpoint: Endpoint, request: Request) -> Response:
        return await self._handle(request, endpoint.api, endpoint)

    async def _models(self, request: Request) -> Response:
        api, model = dialects.api_of(request), request.path_params.get("model", "")
        if model and not _MODEL.fullmatch(model):
            return dialects.error(api, "missing", "there is no such model")
        path = ("/v1" if api == "anthropic" else "") + "/models" + (f"/{model}" if model else "")
        return await self._handle(request, api, Endpoint(api, path, "GET", free=True))

    async def _left(self, request: Request) -> Response:
        """The rest of the budget, and whether the last request was refused because of it. Asks no provider."""
        if not self._knows_token(request):
            return dialects.error(dialects.api_of(request), "token", _TOKEN)
        return JSONResponse({"left": self.budget.left(), "used_up": self.budget.used_up})

    def _knows_token(self, request: Request) -> bool:
        return secrets.compare_digest(dialects.token_of(request).encode(), self._token)

    async def _handle(self, request: Request, api: Api, endpoint: Endpoint) -> Response:
        """Handle a request; every error is returned in the format of the agent's client."""
        if not self._knows_token(request):
            return dialects.error(api, "token", _TOKEN)
        try:
            self._check_rates()
            return await self._pass_on(request, endpoint)
        except (RequestRejected, OverBudget) as rejected:
            return dialects.error(api, rejected.problem, str(rejected))
        except MemoryLimitReached:
            return dialects.error(api, "busy", "the requests of this run under way take too much memory: wait")
        except UpstreamError as failed:
            return dialects.error(api, _PROBLEMS.get(failed.status, "upstream"), str(failed))
        except ClientDisconnect:
            return Response(status_code=400)
        except Exception as error:  # its text may contain secrets
            logger.error("the LLM gateway failed: %s", type(error).__name__)  # noqa: TRY400
            return dialects.error(api, "upstream", "the gateway failed")

    def _check_rates(self) -> None:
        policy = self._policy
        for rate, limit, unit in (
            (self._requests, policy.requests_per_minute, "requests to language models"),
            (self._tokens, policy.tokens_per_minute, "tokens of language models"),
        ):
            if seconds := rate.wait():
                raise RequestRejected("busy", f"more than {limit:,} {unit} a minute: wait {seconds} seconds")
        self._requests.use(1)

    async def _pass_on(self, request: Request, endpoint: Endpoint) -> Response:
        size = declared_size(request, self._policy.body_bytes)
        resources = contextlib.AsyncExitStack()
        reserved = await resources.enter_async_context(self._memory.reserve(size, MEMORY_WAIT_SECONDS))
        try:
            exchange = await self._prepare(request, endpoint, reserved)
        except BaseException:
            await resources.aclose()
            raise
        task = asyncio.create_task(self._carry_out(exchange, resources))
        self._under_way.add(task)
        task.add_done_callback(self._done)
        awaited: list[asyncio.Future[Any]] = [exchange.relay, task]
        await asyncio.wait(awaited, return_when=asyncio.FIRST_COMPLETED)
        if not exchange.relay.done():
            task.result()  # raises
        relay = exchange.relay.result()
        await relay.wait_for_headers()
        return StreamingResponse(relay.body(), relay.status, relay.headers)

    async def _prepare(self, request: Request, endpoint: Endpoint, reserved: ReservedMemory) -> _Exchange:
        """Read and check a request."""
        policy, body = self._policy, None
        model = request.path_params.get("model", "")
        if endpoint.api == "gemini" and not _GEMINI_MODEL.fullmatch(model):
            raise RequestRejected("missing", "there is no such model")
        if endpoint.streams and request.query_params.get("alt") != "sse":
            raise RequestRejected("request", "streams are only available as events: add ?alt=sse")
        if endpoint.method == "POST":
            body = await read_body(request, policy.body_bytes, reserved)
            model = model or model_of(body)
        match = policy.provider_for(endpoint.api, model)
        if match is None:
            raise RequestRejected("missing", f"no provider serves the model {model!r} here")
        name, provider = match
        completion = CompletionRequest({}, model, stream=False)
        if body is not None:
            completion = check(body, model, endpoint, provider, hosted_tools=policy.hosted_tools)
        rates = None if endpoint.free else self._prices.rates(provider, model)
        if rates is None and not endpoint.free and (policy.budget.dollars is not None or policy.refuse_unpriced):
            raise RequestRejected(
                "missing", f"{model!r} has no price here, so its cost cannot be limited; choose another"
            )
        is_available = provider.models or policy.hosted_tools or endpoint.free or self._prices.names(provider, model)
        if not is_available:
            raise RequestRejected("missing", f"the model {model!r} is not available here; choose another")
        return _Exchange(
            endpoint=endpoint,
            completion=completion,
            entry=LoggedRequest(name, request.scope["path"], model, completion.stream),
            provider=provider,
            rates=rates,
            headers=dialects.headers_to_provider(request, provider),
            beta=request.query_params.get("beta") == "true",
            reserved=reserved,
            relay=asyncio.get_running_loop().create_future(),
        )

    async def _carry_out(self, exchange: _Exchange, resources: contextlib.AsyncExitStack) -> None:
        """Check a request against the budget, relay it and log it, even if the agent disconnects."""
        endpoint, entry, provider, rates = exchange.endpoint, exchange.entry, exchange.provider, exchange.rates
        body, window = exchange.completion.body, rates.window if rates is not None else None
        async with resources, self._concurrency:
            bound = max_usage(body, endpoint, exchange.completion.media, provider, window)
            try:
                requested_bound, bound = bound, self.budget.admit(bound, provider, rates)
                if requested_bound.allows_thinking(body) and not bound.allows_thinking(body):
                    raise OverBudget("budget", f"what is left of the budget allows {bound.limit} tokens: think less")
            except OverBudget as reached:
                self.budget.refuse(entry, reached)
                raise
            body = _with_usage(bound.apply(body), endpoint, provider)
            max_used = bound.usage(provider, rates) if not endpoint.free else Usage()
            dollars = 0.0 if endpoint.free else rates.most(max_used) if rates is not None else None
            reserved_tokens = min(max_used.total, self._policy.tokens_per_minute or 0)
            self._tokens.use(reserved_tokens)
            with self.budget.under_way(entry, max_used, dollars):
                upstream = self._client.build_request(
                    endpoint.method,
                    endpoint.url(provider, entry.model),
                    headers=exchange.headers,
                    params={"alt": "sse"} if endpoint.streams else {"beta": "true"} if exchange.beta else None,
                    content=plain_json.dumps(body).encode() if endpoint.method == "POST" else None,
                )
                relay = Relay(self._client, upstream, entry, endpoint.api, self._redactor, exchange.reserved)
                relay.drop_usage_event = entry.stream and not _wants_usage(exchange.completion.body)
                relay.free = endpoint.free
                exchange.relay.set_result(relay)
                try:
                    await relay.run(self._policy.request_seconds)
                finally:
                    entry.usage = Usage() if endpoint.free else entry.usage
                    entry.cost_usd = _cost(entry, rates)
                    self._tokens.use(entry.usage.total - reserved_tokens)
            if self._transcripts is not None:
                self._write_transcript(self._transcripts, entry, body, relay)

    def _done(self, task: asyncio.Task[None]) -> None:
        self._under_way.discard(task)
        if (
            not task.cancelled()
            and (error := task.exception()) is not None
            and not isinstance(error, RequestRejected | OverBudget)
        ):
            logger.error("the LLM gateway failed: %s", type(error).__name__)

    def _write_transcript(
        self, transcripts: JsonLinesLog, entry: LoggedRequest, body: dict[str, Any], relay: Relay
    ) -> None:
        response: Any = bytes(relay.transcript).decode("utf-8", "replace")
        if not entry.stream:
            with contextlib.suppress(ValueError):
                response = json.loads(response)
        record = {**entry.record(), "request": body, "response": response}
        hidden = self._redactor.hide(plain_json.dumps(record).encode())
        transcripts.append(json.loads(hidden))


@cache
def _certificates() -> ssl.SSLContext:
    """The certificates that providers are verified with. Reading them takes a tenth of a second."""
    return httpx.create_ssl_context()


def _cost(entry: LoggedRequest, rates: Rates | None) -> float | None:
    if not entry.usage.total:
        return 0.0
    if rates is None:
        return None
    return rates.most(entry.usage) if entry.usage.estimated else rates.cost(entry.usage, entry.tier)


def _wants_usage(body: dict[str, Any]) -> bool:
    options = body.get("stream_options")
    return isinstance(options, dict) and bool(options.get("include_usage"))


def _with_usage(body: dict[str, Any], endpoint: Endpoint, provider: Provider) -> dict[str, Any]:
    """The body, asking for the usage where needed: OpenAI's chat streams report it only on demand."""
    chat = endpoint.path in ("/chat/completions", "/completions")
    if not (body.get("stream") is True and chat and provider.stream_usage):
        return body
    options = body.get("stream_options")
    return {**body, "stream_options": {**(options if isinstance(options, dict) else {}), "include_usage": True}}
