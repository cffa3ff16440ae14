"""HTTP servers in a thread of this process, one thread for the services of a run.

Their clients are agents, which may be malicious: each server accepts a bounded number of connections, and closes those
that send no request in time.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import socket
import threading
import time
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any, Self, TypeVar

import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol

CONNECTIONS = 64
"""Simultaneous connections of one server. Further ones are closed, so no agent can exhaust this process's file
descriptors."""
HEADER_SECONDS = 20.0
"""Time for the headers of a connection's first request, at least; and for those of the next, after an answer."""
UNREAD_SECONDS = 60.0
"""Time after which a connection is closed whose client does not read."""
KEEP_ALIVE_SECONDS = 60
CLOSE_SECONDS = 2
PORT_SECONDS = 5.0
"""Time to wait for the port of an earlier server to become free."""

Result = TypeVar("Result")


class BoundedProtocol(H11Protocol):
    """Limits the connections that a client can hold open without sending a request, or without reading the answer."""

    most = CONNECTIONS
    """Simultaneous connections of one server."""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Close a connection above the limit, and watch the others."""
        super().connection_made(transport)
        self._unread: asyncio.TimerHandle | None = None
        if len(self.connections) > self.most:
            transport.abort()
            return
        self.loop.call_later(HEADER_SECONDS, self._abort_if_idle, None)

    def _abort_if_idle(self, last: object) -> None:
        """Close the connection if no request has come since the one that was the last at the previous check."""
        if self.transport.is_closing() or self.transport.get_protocol() is not self:  # a WebSocket has its own protocol
            return
        if self.cycle is last and (last is None or self.cycle.response_complete):
            self.transport.abort()
            return
        self.loop.call_later(HEADER_SECONDS, self._abort_if_idle, self.cycle)

    def pause_writing(self) -> None:
        """Close the connection if its client does not read for too long."""
        super().pause_writing()
        self._unread = self.loop.call_later(UNREAD_SECONDS, self.transport.abort)

    def resume_writing(self) -> None:
        """Keep the connection: its client reads."""
        super().resume_writing()
        if self._unread is not None:
            self._unread.cancel()


class _Server(uvicorn.Server):
    """Ends at once on request: uvicorn polls every tenth of a second, and waits for another one at the end."""

    def __init__(self, config: uvicorn.Config) -> None:
        super().__init__(config)
        self._end_requested = asyncio.Event()

    def end(self) -> None:
        """Stop serving; called in the event loop."""
        self.should_exit = True
        self._end_requested.set()

    async def main_loop(self) -> None:
        counter = 0
        while not await self.on_tick(counter):
            counter = (counter + 10) % 864_000  # of tenths of a second
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._end_requested.wait(), 1)

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        if self.server_state.connections or self.server_state.tasks:
            await super().shutdown(sockets)
            return
        for listener in (*self.servers, *(sockets or ())):
            listener.close()
        for server in self.servers:
            await server.wait_closed()


class ServerThread:
    """An event loop in a daemon thread, and the HTTP servers in it; stopped at the end of a ``with`` block."""

    def __init__(self, name: str = "services") -> None:
        self._loop = asyncio.new_event_loop()
        self._servers: list[tuple[_Server, asyncio.Future[None]]] = []
        self._thread = threading.Thread(target=self._loop.run_forever, name=name, daemon=True)
        self._thread.start()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_error: object) -> None:
        self.close()

    def run(self, work: Coroutine[Any, Any, Result]) -> Result:
        """Run a coroutine in the event loop, from any other thread, and wait for its result."""
        return asyncio.run_coroutine_threadsafe(work, self._loop).result()

    def responds(self, seconds: float) -> bool:
        """Whether the event loop does anything within `seconds`. It ends if it cannot have memory for itself."""
        if not self._thread.is_alive():
            return False
        try:
            asyncio.run_coroutine_threadsafe(asyncio.sleep(0), self._loop).result(seconds)
        except TimeoutError:
            return False
        return True

    def serve(self, app: Any, listener: socket.socket) -> None:
        """Start an HTTP server of an ASGI application on a socket of `listen_tcp` or `listen_unix`."""
        config = uvicorn.Config(
            app,
            http=BoundedProtocol,
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
        server = _Server(config)

        async def start() -> asyncio.Future[None]:
            return asyncio.ensure_future(server.serve(sockets=[listener]))

        self._servers.append((server, self.run(start())))

    def close(self, last: Callable[[], Coroutine[Any, Any, None]] | None = None) -> None:
        """Stop the servers, then end the thread. Requests under way get ``CLOSE_SECONDS`` to finish.

        Args:
            last: called in the event loop once the servers have stopped.
        """
        if self._loop.is_closed():
            return
        self.run(self._shut_down(last))
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    async def _shut_down(self, last: Callable[[], Coroutine[Any, Any, None]] | None) -> None:
        for server, _ in self._servers:
            server.end()
        await asyncio.gather(*(ended for _, ended in self._servers), return_exceptions=True)
        if last is not None:
            await last()
        remaining = asyncio.all_tasks() - {asyncio.current_task()}
        for task in remaining:
            task.cancel()
        await asyncio.gather(*remaining, return_exceptions=True)


async def in_thread(work: Callable[[], Result]) -> Result:
    """Run blocking work in a new thread and wait for its result.

    Unlike in the loop's thread pool, the work never waits for other work, and Python can exit before it has finished.
    """
    loop = asyncio.get_running_loop()
    future: asyncio.Future[Result] = loop.create_future()

    def resolve(result: Result | None, error: BaseException | None) -> None:
        if future.done():  # the waiting task was cancelled
            return
        if error is not None:
            future.set_exception(error)
        else:
            future.set_result(result)  # type: ignore[arg-type]

    def carry_out() -> None:
        result, error = None, None
        try:
            result = work()
        except BaseException as raised:
            error = raised
        with contextlib.suppress(RuntimeError):  # the loop has been closed
            loop.call_soon_threadsafe(resolve, result, error)

    threading.Thread(target=carry_out, name="sandbox-service-work", daemon=True).start()
    return await future


def listen_tcp(host: str, port: int | None) -> socket.socket:
    """A listening socket: on `port` if it becomes free within a few seconds, else on any free port.

    Raises:
        OSError: the address cannot be bound.
    """
    deadline = time.monotonic() + PORT_SECONDS
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listener = None
    while port and listener is None and time.monotonic() < deadline:
        try:
            listener = socket.create_server((host, port), family=family, backlog=CONNECTIONS)
        except OSError:
            time.sleep(0.1)
    listener = listener or socket.create_server((host, 0), family=family, backlog=CONNECTIONS)
    # Connections inherit TCP_NODELAY. Without it, every response except the first on a connection takes 40 ms: asyncio
    # sets it only on sockets that were created with an explicit protocol.
    listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return listener


def listen_unix(path: Path) -> socket.socket:
    """A listening Unix socket. All users may connect to it, so access is controlled by the permissions of its folder.

    Raises:
        OSError: the socket cannot be created, for example because its path is longer than 107 bytes.
    """
    path.unlink(missing_ok=True)  # a process that was killed may have left one
    listener = socket.socket(socket.AF_UNIX)
    try:
        listener.bind(os.fspath(path))
        path.chmod(0o666)
        listener.listen(CONNECTIONS)
    except OSError:
        listener.close()
        raise
    return listener
