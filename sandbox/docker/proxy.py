"""The allowlist policy: an HTTP proxy outside the container that connects to listed hosts only."""

from __future__ import annotations

import contextlib
import ipaddress
import socket
import socketserver
import threading
from collections.abc import Collection
from pathlib import Path

PORTS = frozenset({80, 443})
HEADER_BYTES = 16 * 1024
SECONDS = 60.0
CONNECTIONS = 64


def is_allowed(host: str, hosts: Collection[str]) -> bool:
    """Whether a host is on the list, in which ``.example.org`` stands for all subdomains of example.org.

    >>> is_allowed("example.com", ["example.com"]), is_allowed("a.example.org", [".example.org"])
    (True, True)
    """
    host = host.lower().rstrip(".")
    return any(host == entry or (entry.startswith(".") and host.endswith(entry)) for entry in map(str.lower, hosts))


class _Handler(socketserver.BaseRequestHandler):
    server: AllowlistProxy

    def handle(self) -> None:
        client: socket.socket = self.request
        client.settimeout(SECONDS)
        with contextlib.suppress(OSError, ValueError), self.server.places:
            method, target = self._request(client)
            host, _, port = target.rpartition(":")
            if method != "CONNECT":
                return self._refuse(client, "405 Method Not Allowed", "only CONNECT (https) is served")
            if not is_allowed(host, self.server.hosts) or int(port) not in PORTS:
                return self._refuse(client, "403 Forbidden", f"{target} is not on the list of allowed hosts")
            try:
                upstream = _connect(host, int(port))
            except OSError as error:
                return self._refuse(client, "502 Bad Gateway", str(error))
            with upstream:
                client.sendall(b"HTTP/1.1 200 Connection established\r\n\r\n")
                back = threading.Thread(target=_pump, args=(upstream, client), daemon=True)
                back.start()
                _pump(client, upstream)
                back.join()
        return None

    @staticmethod
    def _request(client: socket.socket) -> tuple[str, str]:
        header = b""
        while b"\r\n\r\n" not in header:
            chunk = client.recv(4096)
            header += chunk
            if not chunk or len(header) > HEADER_BYTES:
                raise ValueError("no request")
        method, target, _ = header.split(b"\r\n", 1)[0].decode("latin-1").split(" ", 2)
        return method, target

    @staticmethod
    def _refuse(client: socket.socket, status: str, reason: str) -> None:
        body = f"{reason}\n".encode()
        client.sendall(f"HTTP/1.1 {status}\r\nContent-Length: {len(body)}\r\n\r\n".encode() + body)


class AllowlistProxy(socketserver.ThreadingUnixStreamServer):
    """An HTTP proxy on a Unix socket, with a thread per connection, until it is closed."""

    daemon_threads = True

    def __init__(self, path: Path, hosts: Collection[str]) -> None:
        """Start listening.

        Args:
            path: path of the socket; an existing one is replaced.
            hosts: the hosts that can be reached, on ports 80 and 443.
        """
        self.hosts = tuple(hosts)
        self.places = threading.BoundedSemaphore(CONNECTIONS)
        path.unlink(missing_ok=True)
        super().__init__(str(path), _Handler)
        path.chmod(0o666)
        threading.Thread(target=self.serve_forever, name=f"allowlist {path.parent.name}", daemon=True).start()

    def close(self) -> None:
        """Stop listening."""
        self.shutdown()
        self.server_close()


def _connect(host: str, port: int) -> socket.socket:
    """Connect to a host on the internet. Private addresses are refused: they would give access to this network."""
    for family, kind, protocol, _, address in socket.getaddrinfo(host, port, type=socket.SOCK_STREAM):
        if not ipaddress.ip_address(address[0]).is_global:
            raise OSError(f"{host} has the private address {address[0]}")
        connection = socket.socket(family, kind, protocol)
        connection.settimeout(SECONDS)
        try:
            connection.connect(address)
        except OSError:
            connection.close()
            continue
        return connection
    raise OSError(f"{host} cannot be reached")


def _pump(source: socket.socket, target: socket.socket) -> None:
    with contextlib.suppress(OSError):
        while chunk := source.recv(64 * 1024):
            target.sendall(chunk)
    with contextlib.suppress(OSError):
        target.shutdown(socket.SHUT_WR)
