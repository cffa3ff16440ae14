"""Proxies that note where they are to connect to: one for HTTP, one for SOCKS 5.

Whatever the host is, they connect to the port on 127.0.0.1, where the servers of tests are: those would not be reached
through a proxy by their own address.
"""

from __future__ import annotations

import contextlib
import socket
import socketserver
import threading
from collections.abc import Iterator


class _Server(socketserver.ThreadingTCPServer):
    daemon_threads = True
    allow_reuse_address = True
    asked: list[str]
    login: bool


class _Http(socketserver.BaseRequestHandler):
    """CONNECT, and requests with whole URLs, one for each connection."""

    server: _Server

    def handle(self) -> None:
        data = b""
        while b"\r\n\r\n" not in data:
            if not (more := self.request.recv(1 << 16)):
                return
            data += more
        head, _, body = data.partition(b"\r\n\r\n")
        first, *headers = head.split(b"\r\n")
        method, target, version = first.split(b" ")
        place, slash, path = target.removeprefix(b"http://").partition(b"/")
        self.server.asked.append(place.decode())
        if self.server.login:
            answer = b"HTTP/1.1 407 Proxy Authentication Required\r\nProxy-Authenticate: Basic\r\n"
            self.request.sendall(answer + b"Content-Length: 0\r\n\r\n")
            return
        port = int(place.rpartition(b":")[2])
        with socket.create_connection(("127.0.0.1", port)) as there:
            if method == b"CONNECT":
                self.request.sendall(b"HTTP/1.1 200 OK\r\n\r\n")
            else:
                kept = [line for line in headers if not line.lower().startswith((b"connection:", b"proxy-"))]
                lines = [b" ".join((method, slash + path, version)), *kept, b"Connection: close"]
                there.sendall(b"\r\n".join(lines) + b"\r\n\r\n" + body)
            _relay(self.request, there)


class _Socks(socketserver.BaseRequestHandler):
    """Without a login, to an address or a name."""

    server: _Server

    def handle(self) -> None:
        here: socket.socket = self.request
        _, count = _read(here, 2)
        _read(here, count)
        here.sendall(b"\x05\x00")
        kind = _read(here, 4)[3]
        length = 4 if kind == 1 else _read(here, 1)[0]
        address = _read(here, length)
        port = int.from_bytes(_read(here, 2), "big")
        self.server.asked.append(f"{socket.inet_ntoa(address) if kind == 1 else address.decode()}:{port}")
        with socket.create_connection(("127.0.0.1", port)) as there:
            here.sendall(b"\x05\x00\x00\x01\x00\x00\x00\x00\x00\x00")
            _relay(here, there)


def _read(connection: socket.socket, count: int) -> bytes:
    data = b""
    while len(data) < count:
        if not (more := connection.recv(count - len(data))):
            raise EOFError
        data += more
    return data


def _relay(here: socket.socket, there: socket.socket) -> None:
    def copy(source: socket.socket, target: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while data := source.recv(1 << 16):
                target.sendall(data)
        with contextlib.suppress(OSError):
            target.shutdown(socket.SHUT_WR)

    back = threading.Thread(target=copy, args=(there, here), daemon=True)
    back.start()
    copy(here, there)
    back.join()


@contextlib.contextmanager
def proxy(scheme: str, *, login: bool = False) -> Iterator[tuple[str, list[str]]]:
    """The URL of a proxy, and the places that it was asked for, as HOST:PORT. With `login`, it refuses all of them."""
    with _Server(("127.0.0.1", 0), _Http if scheme == "http" else _Socks) as server:
        server.asked, server.login = [], login
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"{scheme}://127.0.0.1:{server.server_address[1]}", server.asked
        server.shutdown()
