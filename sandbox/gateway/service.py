"""The gateway of one run: who may ask, what for, which provider answers, and what it costs."""

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

from common.jsonlines import Journal
from common.providers import Api, Provider
from sandbox.gateway import dialects
from sandbox.gateway.budget import Entry, Ledger
from sandbox.gateway.dialects import ENDPOINTS, Endpoint, Problem
from sandbox.gateway.policy import GatewayPolicy
from sandbox.gateway.prices import cost_of, price_of
from sandbox.gateway.question import Question, Refused, read_question
from sandbox.gateway.redact import Redactor
from sandbox.gateway.relay import Relay, Trouble
from sandbox.gateway.tokens import Usage, estimate
from sandbox.limits import GIB

logger = logging.getLogger(__name__)

CONNECT_SECONDS = 15.0
_PROBLEMS: dict[str, Problem] = {"timeout": "timeout", "credentials": "account"}
_MODEL = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:@-]{0,199}")


class GatewayService:
    """An OpenAI- and Anthropic-compatible reverse proxy. Lives in the event loop of the services."""

    def __init__(self, policy: GatewayPolicy, folder: Path, token: str, since: str) -> None:
        """Go on where the journal in `folder` ends, or begin.

        Args:
            policy: providers, prices, budget.
            folder: gets `gateway.jsonl`, and `transcripts.jsonl` if asked for.
            token: what the agent has as its API key.
            since: ISO time from which on requests count towards the budget.
        """
        self.ledger = Ledger(folder, policy.budget, since)
        self.routes = [Route(path, self._ask, methods=["POST"]) for path in ENDPOINTS]
        self.routes += [Route(path, self._models, methods=["GET"]) for path in ("/v1/models", "/v1/models/{model}")]
        self._policy = policy
        self._token = token.encode()
        self._redactor = Redactor(policy.secrets())
        self._transcripts = Journal(folder / "transcripts.jsonl", 2 * GIB) if policy.transcripts else None
        self._places = asyncio.Semaphore(policy.concurrent)
        self._under_way: set[asyncio.Task[None]] = set()
        self._client = httpx.AsyncClient(
            timeout=httpx.Timeout(policy.silence_seconds, connect=CONNECT_SECONDS, pool=None),
            limits=httpx.Limits(max_connections=None, max_keepalive_connections=policy.concurrent),
            headers={"user-agent": "mlebench-gateway"},
            follow_redirects=False,  # a redirection would take the key elsewhere
        )

    async def close(self) -> None:
        """Break off what is under way, which is written down, and close the connections."""
        for task in self._under_way:
            task.cancel()
        await asyncio.gather(*self._under_way, return_exceptions=True)
        await self._client.aclose()

    async def _ask(self, request: Request) -> Response:
        endpoint = ENDPOINTS[request.scope["path"]]
        return await self._guarded(request, endpoint.api, endpoint)

    async def _models(self, request: Request) -> Response:
        api, model = dialects.api_of(request), request.path_params.get("model", "")
        if model and not _MODEL.fullmatch(model):
            return dialects.error(api, "missing", "there is no such model")
        path = ("/v1" if api == "anthropic" else "") + "/models" + (f"/{model}" if model else "")
        return await self._guarded(request, api, Endpoint(api, path, "GET", free=True))

    async def _guarded(self, request: Request, api: Api, endpoint: Endpoint) -> Response:
        """The answer, whatever happens in a form that the agent's client understands."""
        if not secrets.compare_digest(dialects.token_of(request).encode(), self._token):
            return dialects.error(api, "token", "this gateway takes the API key in the environment of the run only")
        try:
            return await self._pass_on(request, endpoint)
        except Refused as refused:
            return dialects.error(api, refused.problem, str(refused))
        except Trouble as trouble:
            return dialects.error(api, _PROBLEMS.get(trouble.status, "upstream"), str(trouble))
        except ClientDisconnect:
            return Response(status_code=400)
        except Exception as error:  # its text may hold what nobody is to see
            logger.error("the LLM gateway failed: %s", type(error).__name__)  # noqa: TRY400
            return dialects.error(api, "upstream", "the gateway failed")

    async def _pass_on(self, request: Request, endpoint: Endpoint) -> Response:
        policy = self._policy
        if endpoint.method == "GET":
            question = Question({}, request.path_params.get("model", ""), stream=False, bytes=0)
        else:
            question = await read_question(request, endpoint.api, policy.body_bytes, hosted_tools=policy.hosted_tools)
        found = policy.provider_for(endpoint.api, question.model)
        if found is None:
            raise Refused("missing", f"no provider serves the model {question.model!r} here")
        name, provider = found
        entry = Entry(name, request.scope["path"], question.model, question.stream)
        price = None if endpoint.free else price_of(policy.prices, question.model)
        if price is None and policy.budget.dollars is not None and not endpoint.free:
            known = ", ".join(sorted(policy.prices))
            raise Refused("missing", f"{question.model!r} has no price here, and money is limited; priced: {known}")
        upstream = self._client.build_request(
            endpoint.method,
            provider.base_url.rstrip("/") + endpoint.path,
            headers=dialects.headers_to_provider(request, provider),
            params={"beta": "true"} if request.query_params.get("beta") == "true" else None,
            content=json.dumps(_body(question, endpoint, provider)).encode() if endpoint.method == "POST" else None,
        )
        relay = Relay(self._client, upstream, entry, endpoint.api, self._redactor)
        relay.drop_usage_event = question.stream and not _wants_usage(question.body)
        guess = Usage() if endpoint.free else Usage(estimate(question.bytes), question.output_tokens)
        task = asyncio.create_task(self._carry_out(relay, entry, question, guess, free=endpoint.free))
        self._under_way.add(task)
        task.add_done_callback(self._done)
        return await self._answer(relay, task)

    async def _answer(self, relay: Relay, task: asyncio.Task[None]) -> Response:
        begun = asyncio.create_task(relay.begin())
        await asyncio.wait({begun, task}, return_when=asyncio.FIRST_COMPLETED)
        if not begun.done():
            begun.cancel()
            task.result()  # raises
        await begun
        return StreamingResponse(relay.pieces(), relay.status, relay.headers)

    async def _carry_out(self, relay: Relay, entry: Entry, question: Question, guess: Usage, *, free: bool) -> None:
        """The request from budget to journal; goes on when the agent hangs up."""
        async with self._places:
            if why_not := self.ledger.exhausted():
                self.ledger.refuse(entry, why_not[1])
                raise Refused(*why_not)
            price = price_of(self._policy.prices, question.model)
            with self.ledger.under_way(entry, guess.total, cost_of(guess, price)):
                try:
                    await relay.run(self._policy.request_seconds)
                finally:
                    entry.usage = Usage() if free else entry.usage
                    entry.cost_usd = cost_of(entry.usage, price) if entry.usage.total else 0.0
            if self._transcripts is not None:
                self._keep(self._transcripts, entry, question, relay)

    def _done(self, task: asyncio.Task[None]) -> None:
        self._under_way.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None and not isinstance(error, Refused):
            logger.error("the LLM gateway failed: %s", type(error).__name__)

    def _keep(self, transcripts: Journal, entry: Entry, question: Question, relay: Relay) -> None:
        response: Any = bytes(relay.transcript).decode("utf-8", "replace")
        if not entry.stream:
            with contextlib.suppress(ValueError):
                response = json.loads(response)
        record = {**entry.record(), "request": question.body, "response": response}
        hidden = self._redactor.hide(json.dumps(record).encode())
        transcripts.append(json.loads(hidden))


def _wants_usage(body: dict[str, Any]) -> bool:
    options = body.get("stream_options")
    return isinstance(options, dict) and bool(options.get("include_usage"))


def _body(question: Question, endpoint: Endpoint, provider: Provider) -> dict[str, Any]:
    """The request with the usage asked for, which OpenAI's chat streams report on demand only."""
    chat = endpoint.path in ("/chat/completions", "/completions")
    if not (question.stream and chat and provider.stream_usage):
        return question.body
    asked = question.body.get("stream_options")
    options = {**(asked if isinstance(asked, dict) else {}), "include_usage": True}
    return {**question.body, "stream_options": options}
