"""HTTP servers inside this process: one event loop in a thread of its own, as many servers as there are runs.

Whoever speaks to them is an agent that may mean harm, so each server takes a bounded number of connections, and a
connection has to come to the point.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import socket
import threading
import time
from collections.abc import Callable, Coroutine, Iterable
from pathlib import Path
from typing import Any, TypeVar

import uvicorn
from starlette.applications import Starlette
from uvicorn.protocols.http.h11_impl import H11Protocol

CONNECTIONS = 64
"""At one time, of one server; more are cut off, so that no agent can use up this process's file descriptors."""
HEADER_SECONDS = 20.0
"""For the headers of a connection's first request."""
KEEP_ALIVE_SECONDS = 60
CLOSE_SECONDS = 2
PORT_SECONDS = 5.0
"""How long the port of an earlier server is waited for."""

Result = TypeVar("Result")


class _BoundedProtocol(H11Protocol):
    """Limits what a client can hold open without asking anything."""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        if len(self.connections) > CONNECTIONS:
            transport.abort()
            return
        self.loop.call_later(HEADER_SECONDS, self._come_to_the_point)

    def _come_to_the_point(self) -> None:
        if self.cycle is None:
            self.transport.abort()


class Served:
    """A server at work."""

    def __init__(self, server: uvicorn.Server, done: asyncio.Future[None]) -> None:
        self._server = server
        self._done = done

    async def stop(self) -> None:
        """Take no more requests, give those under way a moment, and close the port."""
        self._server.should_exit = True
        with contextlib.suppress(asyncio.CancelledError):
            await self._done


async def stop_all(servers: Iterable[Served]) -> None:
    """Stop several servers at once."""
    await asyncio.gather(*(server.stop() for server in servers))


class _Loop:
    """The event loop of all servers of this process, in a daemon thread."""

    def __init__(self) -> None:
        self.loop = asyncio.new_event_loop()
        threading.Thread(target=self.loop.run_forever, name="sandbox-services", daemon=True).start()

    def run(self, work: Coroutine[Any, Any, Result]) -> Result:
        """Run a coroutine in the loop and wait for its end."""
        return asyncio.run_coroutine_threadsafe(work, self.loop).result()


_loop: _Loop | None = None
_lock = threading.Lock()


def run(work: Coroutine[Any, Any, Result]) -> Result:
    """Run a coroutine in the event loop of the services, from any other thread, and wait for its end."""
    global _loop
    with _lock:
        if _loop is None:
            _loop = _Loop()
    return _loop.run(work)


async def in_thread(work: Callable[[], Result]) -> Result:
    """Run blocking work in a thread of its own and wait for its end.

    Unlike work in the loop's pool, it waits for no other run's, and the end of Python does not wait for it.
    """
    loop = asyncio.get_running_loop()
    future: asyncio.Future[Result] = loop.create_future()

    def tell(result: Result | None, error: BaseException | None) -> None:
        if future.done():  # nobody waits any more
            return
        if error is not None:
            future.set_exception(error)
        else:
            future.set_result(result)  # type: ignore[arg-type]

    def carry_out() -> None:
        result, error = None, None
        try:
            result = work()
        except BaseException as problem:
            error = problem
        loop.call_soon_threadsafe(tell, result, error)

    threading.Thread(target=carry_out, name="sandbox-service-work", daemon=True).start()
    return await future


def serve(app: Starlette, listener: socket.socket) -> Served:
    """Start answering on a socket that `listen_tcp` or `listen_unix` opened."""
    config = uvicorn.Config(
        app,
        http=_BoundedProtocol,
        ws="none",
        lifespan="off",
        log_config=None,
        log_level="critical",
        access_log=False,
        proxy_headers=False,
        server_header=False,
        timeout_keep_alive=KEEP_ALIVE_SECONDS,
        timeout_graceful_shutdown=CLOSE_SECONDS,
    )
    server = uvicorn.Server(config)

    async def begin() -> asyncio.Future[None]:
        return asyncio.ensure_future(server.serve(sockets=[listener]))

    return Served(server, run(begin()))


def listen_tcp(host: str, port: int | None) -> socket.socket:
    """A listening socket: on `port` if it becomes free within a few seconds, else on any.

    Raises:
        OSError: the address cannot be bound.
    """
    give_up = time.monotonic() + PORT_SECONDS
    listener = None
    while port and listener is None and time.monotonic() < give_up:
        try:
            listener = socket.create_server((host, port), backlog=CONNECTIONS)
        except OSError:
            time.sleep(0.1)
    listener = listener or socket.create_server((host, 0), backlog=CONNECTIONS)
    # Connections inherit it. Without it every answer but the first on a connection takes 40 ms: asyncio sets it only on
    # sockets that were made with an explicit protocol.
    listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return listener


def listen_unix(path: Path) -> socket.socket:
    """A listening Unix socket that every user may connect to: who can, is decided by the folder it lies in.

    Raises:
        OSError: it cannot be made there; a path may have 107 bytes.
    """
    path.unlink(missing_ok=True)  # of a process that was killed
    listener = socket.socket(socket.AF_UNIX)
    try:
        listener.bind(os.fspath(path))
        path.chmod(0o666)
        listener.listen(CONNECTIONS)
    except OSError:
        listener.close()
        raise
    return listener
