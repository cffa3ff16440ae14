"""An HTTP proxy outside the container, the only way from there to other machines.

| policy | reaches |
|---|---|
| ``allowlist`` | listed hosts with public addresses, port 443, if the name in the TLS handshake is that of the host |
| ``open`` | public addresses, ports 80 and 443, also for ``http://`` URLs |
| ``private`` | every address but those of the loopback interface, every port, also for ``http://`` URLs |

With the first two, no address of this machine itself is reached, not even a public one.
"""

from __future__ import annotations

import contextlib
import ipaddress
import re
import socket
import socketserver
import ssl
import threading
from collections.abc import Collection
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from sandbox.confinement.addresses import why_not
from sandbox.confinement.loopback import PROXIED, PROXY_SOCKET
from sandbox.definitions import Agent
from sandbox.errors import BackendError
from sandbox.host.folder import socket_folder
from sandbox.isolation import Network

PORTS = {"allowlist": frozenset({443}), "open": frozenset({80, 443})}
HEADER_BYTES = 16 * 1024
CONNECT_SECONDS = 60.0
"""Time for a connection to be made, and for the beginning of what the client sends."""
IDLE_SECONDS = 3600.0
"""Time without a byte after which a connection is closed. Answers may take long."""
CONNECTIONS = 64
_TARGET = re.compile(r"(?:([A-Za-z0-9._-]{1,255})|\[([0-9A-Fa-f:.]{2,45})\]):([0-9]{1,5})", re.ASCII)
"""Host and port. Other characters are refused: resolvers read a name up to its first NUL, and take other letters for
Latin ones."""


def is_allowed(host: str, hosts: Collection[str]) -> bool:
    """Whether a host is on the list, in which ``.example.org`` stands for all subdomains of example.org.

    >>> is_allowed("example.com", ["example.com"]), is_allowed("a.example.org", [".example.org"])
    (True, True)
    """
    host = host.lower().rstrip(".")
    return any(host == entry or (entry.startswith(".") and host.endswith(entry)) for entry in map(str.lower, hosts))


def require_listed(agent: Agent, hosts: Collection[str]) -> None:
    """Raise `BackendError` if the agent asks for a host that is not on the list."""
    if refused := [host for host in agent.hosts if not is_allowed(host, hosts)]:
        raise BackendError(
            f"agent {agent.name!r} requests access to {', '.join(refused)}: add hosts to MLEBENCH_ALLOWED_HOSTS to "
            "allow this"
        )


class _Handler(socketserver.BaseRequestHandler):
    server: Proxy

    def handle(self) -> None:
        client: socket.socket = self.request
        client.settimeout(CONNECT_SECONDS)
        with contextlib.suppress(OSError, ValueError):
            policy, first_bytes = self.server.policy, b""
            method, target, header = self._request(client)
            if method != "CONNECT":
                if policy == "allowlist":
                    return self._refuse(client, "405 Method Not Allowed", "only CONNECT (https) is served")
                target, first_bytes = _plain(method, target, header)
            match = _TARGET.fullmatch(target)
            if match is None or int(match[3]) > 65535:
                return self._refuse(client, "400 Bad Request", "the host and port to connect to are not valid")
            host, port = match[1] or match[2], int(match[3])
            listed = policy != "allowlist" or is_allowed(host, self.server.hosts)
            if not listed or port not in PORTS.get(policy, (port,)):
                return self._refuse(client, "403 Forbidden", f"{target} is not on the list of allowed hosts and ports")
            try:
                upstream = _connect(host, port, policy)
            except OSError as error:
                return self._refuse(client, "502 Bad Gateway", str(error))
            with upstream:
                if method == "CONNECT":
                    client.sendall(b"HTTP/1.1 200 Connection established\r\n\r\n")
                if policy == "allowlist":
                    first_bytes = _hello(client, host)
                upstream.sendall(first_bytes)
                client.settimeout(IDLE_SECONDS)
                upstream.settimeout(IDLE_SECONDS)
                answer_thread = threading.Thread(target=_pump, args=(upstream, client), daemon=True)
                answer_thread.start()
                _pump(client, upstream)
                answer_thread.join()
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
    request_queue_size = CONNECTIONS  # the forwarder does not wait if the queue is full

    def __init__(self, path: Path, policy: Network, hosts: Collection[str] = ()) -> None:
        """Start listening.

        Args:
            path: path of the socket; an existing one is replaced.
            policy: what can be reached.
            hosts: for the policy ``allowlist``, the hosts that can be reached.
        """
        self.policy, self.hosts = policy, tuple(hosts)
        self.free_connections = threading.BoundedSemaphore(CONNECTIONS)
        path.unlink(missing_ok=True)
        super().__init__(str(path), _Handler)
        path.chmod(0o666)
        threading.Thread(target=self.serve_forever, name=f"proxy {path.parent.name}", daemon=True).start()

    def process_request(self, request: Any, client_address: Any) -> None:
        """Start a thread for a connection, or close it: an agent must not exhaust this process's threads and files."""
        if not self.free_connections.acquire(blocking=False):
            self.shutdown_request(request)
            return
        try:
            super().process_request(request, client_address)
        except RuntimeError:  # no further thread
            self.free_connections.release()
            self.shutdown_request(request)

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        """Serve a connection."""
        try:
            super().process_request_thread(request, client_address)
        finally:
            self.free_connections.release()

    def close(self) -> None:
        """Stop listening."""
        self.shutdown()
        self.server_close()


class Proxies:
    """The proxies of a backend's runs, under a policy that has one."""

    def __init__(self, policy: Network, hosts: Collection[str]) -> None:
        """Start none yet; arguments as of `Proxy`."""
        self._policy, self._hosts = policy, hosts
        self._proxies: dict[Path, Proxy] = {}

    def start(self, workdir: Path) -> None:
        """Start that of a run, unless there is one. It has to be there before the agent, which may connect."""
        if self._policy in PROXIED and workdir not in self._proxies:
            self._proxies[workdir] = Proxy(socket_folder(workdir) / PROXY_SOCKET, self._policy, self._hosts)

    def close(self, workdir: Path) -> None:
        """Close that of a run; no error without one."""
        if proxy := self._proxies.pop(workdir, None):
            proxy.close()


def _plain(method: str, target: str, header: bytes) -> tuple[str, bytes]:
    """Host and port of a request for an ``http://`` URL, and the request as its server expects it.

    The connection is closed after the answer, so that no second request for another host follows on it.
    """
    url = urlsplit(target)
    if url.scheme != "http" or not url.hostname:
        raise ValueError("no http:// URL")
    request_line, _, rest = header.partition(b"\r\n")
    lines, _, body = rest.partition(b"\r\n\r\n")
    headers = [
        line
        for line in lines.split(b"\r\n")
        if line.partition(b":")[0].strip().lower() not in (b"connection", b"proxy-connection", b"proxy-authorization")
    ]
    path = (url.path or "/") + (f"?{url.query}" if url.query else "")
    version = request_line.rpartition(b" ")[2]
    new_lines = [f"{method} {path} ".encode("latin-1") + version, *headers, b"Connection: close"]
    host = f"[{url.hostname}]" if ":" in url.hostname else url.hostname
    return f"{host}:{url.port or 80}", b"\r\n".join(new_lines) + b"\r\n\r\n" + body


def _hello(client: socket.socket, host: str) -> bytes:
    """Receive the beginning of a TLS connection, and check that it asks for the host by name (no name for an address).

    Raises:
        ValueError: it is no TLS, or asks for another name; the client gets TLS's answer to that.
    """
    names: list[str | None] = []

    def named(_tls: ssl.SSLObject, name: str | None, _context: ssl.SSLContext) -> int:
        names.append(name)
        return int(ssl.ALERT_DESCRIPTION_UNRECOGNIZED_NAME)  # ends the handshake here: the server makes its own

    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.sni_callback = named
    incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
    tls, hello = context.wrap_bio(incoming, outgoing, server_side=True), b""
    while True:
        chunk = client.recv(4096)
        hello += chunk
        incoming.write(chunk)
        try:
            tls.do_handshake()
        except ssl.SSLWantReadError:
            if chunk and len(hello) < HEADER_BYTES:
                continue
            break
        except ssl.SSLError:
            break
    expected_name = "" if _is_address(host) else host.lower().rstrip(".")
    if not names or (names[0] or "").lower().rstrip(".") != expected_name:
        client.sendall(outgoing.read())
        raise ValueError("another name")
    return hello


def _is_address(host: str) -> bool:
    with contextlib.suppress(ValueError):
        return bool(ipaddress.ip_address(host))
    return False


def _connect(host: str, port: int, policy: Network) -> socket.socket:
    """Connect to a host. The policy is checked on the address that its name is resolved to."""
    for family, kind, protocol, _, address in socket.getaddrinfo(host, port, type=socket.SOCK_STREAM):
        if why := why_not(str(address[0]), policy):
            raise OSError(f"{host} has the address {address[0]}, which {why}")
        connection = socket.socket(family, kind, protocol)
        connection.settimeout(CONNECT_SECONDS)
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
