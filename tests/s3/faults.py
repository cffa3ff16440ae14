"""A proxy before an HTTP server that does to chosen requests what networks and servers do in bad hours.

    def test_one_503_is_survived(faulty_s3):
        rule = faulty_s3.faults.status(503, "GET", r"raw/.*\\.zip")     # the first such request only
        ...
        assert rule.hits == 1
        assert faulty_s3.proxy.count("LIST") <= 3

Bytes pass unchanged, so signatures hold. A rule matches by method and by a regular expression that is searched in the
unquoted path with its query; from the `nth` matching request on it takes effect `times` times (`ALWAYS`: on all of
them). The first rule that takes effect decides; delays add to it. A GET or HEAD that lists a bucket is a `LIST`.

`stop` and `start` take the whole server away and bring it back on the same port: connections are refused in between.
The proxy knows nothing of S3: it stands before Prefect's server as well, WebSockets included.
"""

from __future__ import annotations

import contextlib
import re
import socket
import struct
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass
from io import BufferedReader
from urllib.parse import unquote

from tests.s3.rules import ALWAYS, Faults, Rule

__all__ = ["ALWAYS", "FaultProxy", "Faults", "Rule"]

_BLOCK = 1 << 16


@dataclass(frozen=True)
class Request:
    """A request that arrived, before anything happened to it. `path` is unquoted and has its query."""

    method: str
    path: str


class FaultProxy:
    """Listens on a free port of 127.0.0.1, forwards to another. A context manager; `requests` holds all that came."""

    def __init__(self, server_port: int) -> None:
        self.server_port = server_port
        self.faults = Faults()
        self.requests: list[Request] = []
        self.port = 0
        self._listener: socket.socket | None = None
        self._open: set[socket.socket] = set()
        self._lock = threading.Lock()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def __enter__(self) -> FaultProxy:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()
        self.faults.clear()

    def count(self, method: str | None = None, path: str = "") -> int:
        """How many requests came with this method (`LIST` for listings) and a path in which `path` is found."""
        return sum(method in (None, each.method) and bool(re.search(path, each.path)) for each in self.requests[:])

    def start(self) -> None:
        """The server is there (again), on the port that it had."""
        listener = socket.socket()
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(("127.0.0.1", self.port))
        listener.listen(512)
        self.port, self._listener = listener.getsockname()[1], listener
        threading.Thread(target=self._accept, args=(listener,), daemon=True).start()

    def stop(self) -> None:
        """The server is away: open connections are reset, new ones refused."""
        listener, self._listener = self._listener, None
        if listener is not None:
            with contextlib.suppress(OSError):
                listener.shutdown(socket.SHUT_RDWR)  # wakes the thread that accepts
            listener.close()
        with self._lock:
            still_open = list(self._open)
        for connection in still_open:
            _abort(connection)

    def _accept(self, listener: socket.socket) -> None:
        while True:
            try:
                connection, _ = listener.accept()
            except OSError:
                return
            threading.Thread(target=self._serve, args=(connection, listener), daemon=True).start()

    def _serve(self, client: socket.socket, listener: socket.socket) -> None:
        with self._tracked(client), contextlib.suppress(OSError, _Ended):
            try:
                server = socket.create_connection(("127.0.0.1", self.server_port))
            except OSError:
                _abort(client)
                return
            client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            server.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            with self._tracked(server), client.makefile("rb") as asked, server.makefile("rb") as answered:
                exchange = _Exchange(client, server, asked, answered)
                while self._pass_on(exchange, listener):
                    pass

    @contextlib.contextmanager
    def _tracked(self, connection: socket.socket) -> Iterator[None]:
        with self._lock:
            self._open.add(connection)
        try:
            if self._listener is None:  # accepted while stopping
                _abort(connection)
            yield
        finally:
            with self._lock:
                self._open.discard(connection)
            connection.close()

    def _pass_on(self, exchange: _Exchange, listener: socket.socket) -> bool:
        """Serve one request; false if the connection is at its end."""
        head = _Head.read(exchange.asked)
        if self._listener is not listener:  # stopped meanwhile: what came after the end of reading is read all the same
            raise _reset(exchange.client)
        method, path = head.words[0], unquote(head.words[1])
        if method in ("GET", "HEAD") and re.search(r"[?&](list-type|prefix|delimiter|uploads)\b", path):
            method = "LIST"
        self.requests.append(Request(method, path))
        late, rule = self.faults.for_request(method, path, head.raw.decode("latin-1"))
        time.sleep(late)
        effect = rule.effect if rule else None
        if rule is not None and effect == "hang":
            while not rule.released.wait(0.05):
                if self._listener is None:
                    raise _reset(exchange.client)
        elif effect == "reset":
            raise _reset(exchange.client)
        elif rule is not None and effect == "status":
            return exchange.refuse(head, int(rule.amount), rule.code)
        elif effect == "repeat":
            return exchange.twice(head)
        answer = exchange.ask(head)
        if effect == "lose_answer":
            exchange.drop(answer, head)
            raise _reset(exchange.client)
        limit = int(rule.amount) if rule is not None and effect == "truncate" else None
        return exchange.answer(answer, head, limit)


class _Ended(Exception):
    """One of the two sides closed its connection."""


@dataclass(frozen=True)
class _Head:
    """First line and headers of a request or an answer, as they came."""

    raw: bytes
    words: list[str]
    fields: dict[str, str]

    @classmethod
    def read(cls, stream: BufferedReader) -> _Head:
        lines = []
        while line := stream.readline():
            lines.append(line)
            if line == b"\r\n":
                break
        else:
            raise _Ended
        first, *others = (line.decode("latin-1").rstrip("\r\n") for line in lines[:-1])
        fields = {name.strip().lower(): value.strip() for name, _, value in (each.partition(":") for each in others)}
        return cls(b"".join(lines), first.split(" ", 2), fields)

    @property
    def status(self) -> int:
        return int(self.words[1])

    @property
    def chunked(self) -> bool:
        return "chunked" in self.fields.get("transfer-encoding", "").lower()

    def body_of_request(self, stream: BufferedReader) -> Iterator[bytes]:
        return _chunks(stream) if self.chunked else _counted(stream, int(self.fields.get("content-length", 0)))

    def body_of_answer(self, stream: BufferedReader, method: str) -> Iterator[bytes]:
        if method == "HEAD" or self.status in (204, 304):
            return iter(())
        if self.chunked:
            return _chunks(stream)
        if "content-length" in self.fields:
            return _counted(stream, int(self.fields["content-length"]))
        return iter(lambda: stream.read1(_BLOCK), b"")  # up to the end of the connection

    @property
    def is_last(self) -> bool:
        unbounded = not self.chunked and "content-length" not in self.fields and self.status not in (204, 304)
        return unbounded or self.fields.get("connection", "").lower() == "close" or self.words[0] == "HTTP/1.0"


@dataclass(frozen=True)
class _Exchange:
    """Both ends of one client's connection."""

    client: socket.socket
    server: socket.socket
    asked: BufferedReader
    answered: BufferedReader

    def ask(self, head: _Head) -> _Head:
        """Send the server the request; return the head of its answer."""
        self.server.sendall(head.raw)
        if "100-continue" in head.fields.get("expect", "").lower():
            answer = _Head.read(self.answered)
            if answer.status != 100:
                return answer
            self.client.sendall(answer.raw)
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):  # it may answer before it has read all
            for block in head.body_of_request(self.asked):
                self.server.sendall(block)
        return self._final()

    def twice(self, head: _Head) -> bool:
        """Send the request two times, answer with what came second."""
        if "100-continue" in head.fields.get("expect", "").lower():
            self.client.sendall(b"HTTP/1.1 100 Continue\r\n\r\n")
        body = b"".join(head.body_of_request(self.asked))
        for turn in range(2):
            self.server.sendall(head.raw + body)
            answer = self._final()
            if turn == 0:
                self.drop(answer, head)
        return self.answer(answer, head)

    def _final(self) -> _Head:
        while (answer := _Head.read(self.answered)).status == 100:
            pass
        return answer

    def drop(self, answer: _Head, head: _Head) -> None:
        for _ in answer.body_of_answer(self.answered, head.words[0]):
            pass

    def answer(self, answer: _Head, head: _Head, limit: int | None = None) -> bool:
        """Give the client the answer, at most `limit` bytes of its body; false if nothing can follow it."""
        self.client.sendall(answer.raw)
        if answer.status == 101:
            return self._tunnel()
        for block in answer.body_of_answer(self.answered, head.words[0]):
            self.client.sendall(block[:limit])
            if limit is not None and (limit := limit - len(block)) <= 0:
                return False
        return not answer.is_last and head.fields.get("connection", "").lower() != "close"

    def refuse(self, head: _Head, code: int, name: str = "") -> bool:
        """Answer with a status, without the server."""
        if "100-continue" not in head.fields.get("expect", "").lower():
            for _ in head.body_of_request(self.asked):
                pass
        name = name or {503: "SlowDown", 500: "InternalError", 403: "AccessDenied", 404: "NoSuchKey"}.get(code, "Error")
        body = f'<?xml version="1.0"?><Error><Code>{name}</Code><Message>made by a rule</Message></Error>'.encode()
        body = b"" if head.words[0] == "HEAD" or code == 200 else body
        lines = (f"HTTP/1.1 {code} {name}", "Content-Type: application/xml", f"Content-Length: {len(body)}")
        self.client.sendall("\r\n".join((*lines, "Connection: close", "", "")).encode() + body)
        return False

    def _tunnel(self) -> bool:
        """Pass bytes both ways from here on (WebSockets)."""
        back = threading.Thread(target=_pour, args=(self.answered, self.client), daemon=True)
        back.start()
        _pour(self.asked, self.server)
        back.join()
        return False


def _pour(source: BufferedReader, target: socket.socket) -> None:
    with contextlib.suppress(OSError, ValueError):
        while block := source.read1(_BLOCK):
            target.sendall(block)
    with contextlib.suppress(OSError):
        target.shutdown(socket.SHUT_RDWR)


def _counted(stream: BufferedReader, count: int) -> Iterator[bytes]:
    while count:
        if not (block := stream.read1(min(_BLOCK, count))):
            raise _Ended
        count -= len(block)
        yield block


def _chunks(stream: BufferedReader) -> Iterator[bytes]:
    """A chunked body as it is, sizes and trailers included."""
    size = -1
    while size:
        yield (line := stream.readline())
        if not line:
            raise _Ended
        size = int(line.split(b";")[0], 16)
        if size:
            yield from _counted(stream, size + 2)
    while (line := stream.readline()) != b"\r\n":
        if not line:
            raise _Ended
        yield line
    yield line


def _abort(connection: socket.socket) -> None:
    """Have a connection end with RST, which the other end sees as an error rather than as an end of data."""
    with contextlib.suppress(OSError):
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))  # RST when it is closed
        connection.shutdown(socket.SHUT_RD)  # wakes the thread that reads, which closes it


def _reset(connection: socket.socket) -> _Ended:
    _abort(connection)
    return _Ended()
