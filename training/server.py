"""Episodes over HTTP and WebSocket, in the protocol of OpenEnv, whose clients work unchanged.

A connection to /ws has one episode at a time, which ends with the connection. POST /reset and /step have it by the
`episode_id` that /reset returns; it ends when it has been idle for too long. Messages are JSON. Everything but /health
needs the token, as the password of basic authentication: it stands in the URL that clients are given.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import socket
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import uvicorn
from pydantic import BaseModel
from starlette.applications import Starlette
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse
from starlette.routing import Route, WebSocketRoute
from starlette.types import ASGIApp, Receive, Scope, Send
from starlette.websockets import WebSocket, WebSocketDisconnect

from common import guard, plain_json
from sandbox.serving import BoundedProtocol, in_thread
from training.actions import Action, Observation
from training.episodes import Episodes
from training.sessions import Rejected, Session, State

MESSAGE_BYTES = 8 << 20
"""The largest message of a client."""
BODY_SECONDS = 30.0
"""Time for a message to arrive that is sent over plain HTTP."""
CONNECTIONS = 256
"""Simultaneous connections, each of which can have a message in memory. Further ones are closed."""
CLOSE_SECONDS = 5
"""Time that connections have to end when the server does."""
_NAME = "mlebench"
_DESCRIPTION = "Machine learning competitions of MLE-bench: run commands in a sandbox, then submit predictions."


class Server:
    """The routes, and the sessions of clients without a connection."""

    def __init__(self, episodes: Episodes, idle_seconds: float) -> None:
        """Serve episodes; one that has had no action for `idle_seconds` ends."""
        self._episodes, self._idle_seconds = episodes, idle_seconds
        self._sessions: dict[str, Session] = {}

    def app(self, credential: str) -> ASGIApp:
        """The application. `credential` is the login of clients, USER:PASSWORD."""
        routes = [
            Route("/health", self._health),
            Route("/metadata", self._metadata),
            Route("/schema", self._schema),
            Route("/state", self._state),
            Route("/reset", self._reset, methods=["POST"]),
            Route("/step", self._step, methods=["POST"]),
            Route("/close", self._close, methods=["POST"]),
            WebSocketRoute("/ws", self._websocket),
        ]
        return _Authorized(Starlette(routes=routes, lifespan=self._lifespan), credential)

    @contextlib.asynccontextmanager
    async def _lifespan(self, _: Starlette) -> AsyncIterator[None]:
        collecting = asyncio.create_task(self._end_idle())
        try:
            yield
        finally:
            collecting.cancel()
            await in_thread(self._episodes.close)

    async def _end_idle(self) -> None:
        while True:
            await asyncio.sleep(min(self._idle_seconds / 4, 5.0))
            for running in self._episodes.running():
                if running.idle_seconds() > self._idle_seconds:
                    await in_thread(running.close)
            in_progress = {running.id for running in self._episodes.running()}
            self._sessions = {id: each for id, each in self._sessions.items() if id in in_progress}

    async def _health(self, _: Request) -> JSONResponse:
        return JSONResponse({"status": "healthy"})

    async def _metadata(self, _: Request) -> JSONResponse:
        names, slots = sorted(self._episodes.names), self._episodes.slots
        about = f"{_DESCRIPTION} Served: {', '.join(names)}; {slots} episodes at a time."
        return JSONResponse({"name": _NAME, "description": about, "version": "1"})

    async def _schema(self, _: Request) -> JSONResponse:
        models: dict[str, type[BaseModel]] = {"action": Action, "observation": Observation, "state": State}
        return JSONResponse({name: model.model_json_schema() for name, model in models.items()})

    async def _state(self, request: Request) -> JSONResponse:
        session = self._sessions.get(request.query_params.get("episode_id", ""))
        return JSONResponse(session.state() if session is not None else State().model_dump())

    async def _reset(self, request: Request) -> JSONResponse:
        async def reset(data: dict[str, Any]) -> dict[str, Any]:
            session = Session(self._episodes)
            answer = await session.reset(data)
            assert session.running is not None
            self._sessions[session.running.id] = session
            return {**answer, "episode_id": session.running.id}

        return await _answered(request, reset)

    async def _step(self, request: Request) -> JSONResponse:
        async def step(data: dict[str, Any]) -> dict[str, Any]:
            action = data.get("action")
            if not isinstance(action, dict):
                raise Rejected("VALIDATION_ERROR", "a step has an action, an object", 422)
            return await self._session(data).step(action)

        return await _answered(request, step)

    async def _close(self, request: Request) -> JSONResponse:
        async def close(data: dict[str, Any]) -> dict[str, Any]:
            await self._session(data).close()
            self._sessions.pop(str(data.get("episode_id")), None)
            return {}

        return await _answered(request, close)

    def _session(self, data: dict[str, Any]) -> Session:
        session = self._sessions.get(str(data.get("episode_id")))
        if session is None:
            raise Rejected("SESSION_ERROR", "no episode of that episode_id is in progress: reset the environment", 404)
        return session

    async def _websocket(self, connection: WebSocket) -> None:
        await connection.accept()
        session = Session(self._episodes)
        try:
            await self._converse(connection, session)
        except (WebSocketDisconnect, RuntimeError):
            pass  # the client has gone
        finally:
            await session.close()

    async def _converse(self, connection: WebSocket, session: Session) -> None:
        receiving = asyncio.ensure_future(_text(connection))
        try:
            while True:
                answer = asyncio.ensure_future(_reply(await receiving, session))
                # The next message is awaited at once: a client that goes during an action ends it.
                receiving = asyncio.ensure_future(_text(connection))
                await asyncio.wait({answer, receiving}, return_when=asyncio.FIRST_COMPLETED)
                if receiving.done() and receiving.exception() is not None:
                    await session.close()
                reply = await answer
                if reply is None:
                    await connection.close()
                    return
                await connection.send_text(plain_json.dumps(reply))
        finally:
            receiving.cancel()
            with contextlib.suppress(asyncio.CancelledError, Exception):
                await receiving


async def _text(connection: WebSocket) -> str:
    """The next message; a binary one is no JSON, and read as an empty one. Raises `WebSocketDisconnect` at the end."""
    message = await connection.receive()
    if message["type"] == "websocket.disconnect":
        raise WebSocketDisconnect(message["code"])
    return message.get("text") or ""


async def _reply(text: str, session: Session) -> dict[str, Any] | None:
    """The answer to a message of a WebSocket; None to `close`."""
    try:
        message = _parsed(text)
        kind, data = message.get("type"), message.get("data") or {}
        if not isinstance(data, dict):
            raise Rejected("VALIDATION_ERROR", "data is an object")
        match kind:
            case "reset":
                return {"type": "observation", "data": await session.reset(data)}
            case "step":
                return {"type": "observation", "data": await session.step(data)}
            case "state":
                return {"type": "state", "data": session.state()}
            case "close":
                return None
        raise Rejected("UNKNOWN_TYPE", "the type of a message is reset, step, state or close")
    except Rejected as refused:
        return {"type": "error", "data": {"message": str(refused), "code": refused.code}}


async def _answered(request: Request, answer: Callable[[dict[str, Any]], Awaitable[dict[str, Any]]]) -> JSONResponse:
    """The response to a POST with a JSON object."""
    try:
        return JSONResponse(await answer(_parsed(await _body(request) or b"{}")))
    except Rejected as refused:
        return JSONResponse({"detail": str(refused), "code": refused.code}, refused.status)


async def _body(request: Request) -> bytearray:
    body = bytearray()
    try:
        async with asyncio.timeout(BODY_SECONDS):
            async for piece in request.stream():
                body += piece
                if len(body) > MESSAGE_BYTES:
                    raise Rejected("VALIDATION_ERROR", f"a message has at most {MESSAGE_BYTES:,} bytes", 413)
    except (TimeoutError, ClientDisconnect):
        raise Rejected("VALIDATION_ERROR", f"a message has to arrive within {BODY_SECONDS:g} seconds", 408) from None
    return body


def _parsed(text: str | bytes | bytearray) -> dict[str, Any]:
    try:
        message = json.loads(text)
    except (ValueError, RecursionError):
        raise Rejected("INVALID_JSON", "a message is a JSON object") from None
    if not isinstance(message, dict):
        raise Rejected("INVALID_JSON", "a message is a JSON object")
    return message


def serve(app: ASGIApp, listener: socket.socket) -> None:
    """Serve an application until SIGINT or SIGTERM."""
    config = uvicorn.Config(
        app,
        http=_Protocol,
        log_config=None,
        access_log=False,
        proxy_headers=False,
        server_header=False,
        ws_max_size=MESSAGE_BYTES,
        timeout_graceful_shutdown=CLOSE_SECONDS,
    )
    uvicorn.Server(config).run(sockets=[listener])


class _Protocol(BoundedProtocol):
    """Limits connections that do not speak; a WebSocket is closed when its client does not answer pings."""

    most = CONNECTIONS


class _Authorized:
    """Refuses requests without the login, and those of pages that a browser shows."""

    def __init__(self, app: ASGIApp, credential: str) -> None:
        self._app, self._credential = app, credential

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] in ("http", "websocket") and scope["path"] != "/health":
            headers = {name.lower(): value.decode("latin-1") for name, value in scope["headers"]}
            if b"origin" in headers or not guard.authorized(headers.get(b"authorization"), self._credential):
                await _refuse(scope, receive, send)
                return
        await self._app(scope, receive, send)


async def _refuse(scope: Scope, receive: Receive, send: Send) -> None:
    if scope["type"] == "websocket":  # before it is accepted: the server answers 403
        await send({"type": "websocket.close", "code": 1008})
        return
    await JSONResponse({"detail": "this needs the URL with the token"}, 401)(scope, receive, send)
