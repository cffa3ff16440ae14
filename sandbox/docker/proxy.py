"""An HTTP proxy outside the container, which connects to public addresses only.

Under the policy ``allowlist`` it connects to listed hosts, for HTTPS only. Under ``open`` it connects to all public
addresses, and also serves requests for ``http://`` URLs.
"""

from __future__ import annotations

import contextlib
import ipaddress
import socket
import socketserver
import threading
from collections.abc import Collection
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

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
    server: Proxy

    def handle(self) -> None:
        client: socket.socket = self.request
        client.settimeout(SECONDS)
        with contextlib.suppress(OSError, ValueError):
            method, target, header = self._request(client)
            hosts, plain = self.server.hosts, None
            if method != "CONNECT":
                if hosts is not None:
                    return self._refuse(client, "405 Method Not Allowed", "only CONNECT (https) is served")
                target, plain = _plain(method, target, header)
            host, _, port = target.rpartition(":")
            host = host.strip("[]")
            if hosts is not None and not (is_allowed(host, hosts) and int(port) in PORTS):
                return self._refuse(client, "403 Forbidden", f"{target} is not on the list of allowed hosts")
            try:
                upstream = _connect(host, int(port))
            except OSError as error:
                return self._refuse(client, "502 Bad Gateway", str(error))
            with upstream:
                if plain is None:
                    client.sendall(b"HTTP/1.1 200 Connection established\r\n\r\n")
                else:
                    upstream.sendall(plain)
                back = threading.Thread(target=_pump, args=(upstream, client), daemon=True)
                back.start()
                _pump(client, upstream)
                back.join()
        return None

    @staticmethod
    def _request(client: socket.socket) -> tuple[str, str, bytes]:
        header = b""
        while b"\r\n\r\n" not in header:
            chunk = client.recv(4096)
            header += chunk
            if not chunk or len(header) > HEADER_BYTES:
                raise ValueError("no request")
        method, target, _ = header.split(b"\r\n", 1)[0].decode("latin-1").split(" ", 2)
        return method, target, header

    @staticmethod
    def _refuse(client: socket.socket, status: str, reason: str) -> None:
        body = f"{reason}\n".encode()
        client.sendall(f"HTTP/1.1 {status}\r\nContent-Length: {len(body)}\r\n\r\n".encode() + body)


class Proxy(socketserver.ThreadingUnixStreamServer):
    """An HTTP proxy on a Unix socket, with a thread per connection, until it is closed."""

    daemon_threads = True

    def __init__(self, path: Path, hosts: Collection[str] | None) -> None:
        """Start listening.

        Args:
            path: path of the socket; an existing one is replaced.
            hosts: the hosts that can be reached, on ports 80 and 443; all with a public address if ``None``.
        """
        self.hosts = None if hosts is None else tuple(hosts)
        self.places = threading.BoundedSemaphore(CONNECTIONS)
        path.unlink(missing_ok=True)
        super().__init__(str(path), _Handler)
        path.chmod(0o666)
        threading.Thread(target=self.serve_forever, name=f"proxy {path.parent.name}", daemon=True).start()

    def process_request(self, request: Any, client_address: Any) -> None:
        """Start a thread for a connection, or close it: an agent must not exhaust this process's threads and files."""
        if not self.places.acquire(blocking=False):
            self.shutdown_request(request)
            return
        super().process_request(request, client_address)

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        """Serve a connection."""
        try:
            super().process_request_thread(request, client_address)
        finally:
            self.places.release()

    def close(self) -> None:
        """Stop listening."""
        self.shutdown()
        self.server_close()


def _plain(method: str, target: str, header: bytes) -> tuple[str, bytes]:
    """Host and port of a request for an ``http://`` URL, and the request as its server expects it.

    The connection is closed after the answer, so that no second request for another host follows on it.
    """
    url = urlsplit(target)
    if url.scheme != "http" or not url.hostname:
        raise ValueError("no http:// URL")
    first, _, rest = header.partition(b"\r\n")
    lines, _, body = rest.partition(b"\r\n\r\n")
    kept = [
        line
        for line in lines.split(b"\r\n")
        if line.partition(b":")[0].strip().lower() not in (b"connection", b"proxy-connection", b"proxy-authorization")
    ]
    path = (url.path or "/") + (f"?{url.query}" if url.query else "")
    version = first.rpartition(b" ")[2]
    new = [f"{method} {path} ".encode("latin-1") + version, *kept, b"Connection: close"]
    return f"{url.hostname}:{url.port or 80}", b"\r\n".join(new) + b"\r\n\r\n" + body


_TRANSLATED = tuple(
    map(ipaddress.ip_network, ("64:ff9b::/96", "64:ff9b:1::/48", "2002::/16", "2001::/32", "::ffff:0:0/96", "::/96"))
)
"""IPv6 addresses that stand for IPv4 addresses, private ones included: NAT64, 6to4, Teredo, mapped and compatible."""


def is_public(address: str) -> bool:
    """Whether an address is on the public internet.

    >>> is_public("1.1.1.1"), is_public("169.254.169.254"), is_public("64:ff9b::a9fe:a9fe")
    (True, False, False)
    """
    found = ipaddress.ip_address(address.partition("%")[0])
    translated = found.version == 6 and any(found in each for each in _TRANSLATED)
    return found.is_global and not found.is_multicast and not translated


def _connect(host: str, port: int) -> socket.socket:
    """Connect to a host on the internet. Private addresses are refused: they would give access to this network."""
    for family, kind, protocol, _, address in socket.getaddrinfo(host, port, type=socket.SOCK_STREAM):
        if not is_public(str(address[0])):
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
