"""Reaching what is not on the internet."""

from __future__ import annotations

import contextlib
import os
import socket
import ssl
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from sandbox.backend import RunSpec
from sandbox.confinement import proxy
from sandbox.confinement.addresses import is_public
from sandbox.docker.backend import DockerBackend
from sandbox.docker.engine import FORWARDER, ROLE, connect
from tests.sandbox.attacks.conftest import ROOT, python
from tests.sandbox.host_service import serving

INNER = [
    "127.0.0.1", "10.0.0.1", "172.16.0.1", "192.168.1.1", "169.254.169.254", "100.64.0.1", "0.0.0.0", "224.0.0.1",
    "255.255.255.255", "192.0.2.1", "198.18.0.1", "::1", "::", "fe80::1", "fe80::1%eth0", "fd00::1", "ff02::1",
    "::ffff:127.0.0.1", "::127.0.0.1", "64:ff9b::127.0.0.1", "64:ff9b::a9fe:a9fe", "64:ff9b:1::1", "2002:7f00:1::",
    "2002:a9fe:a9fe::1", "2001:0:7f00:1::", "fec0::1", "192.88.99.1", "192.0.0.9", "3fff::1", "5f00::1", "100::1",
    "::ffff:8.8.8.8", "2001:db8::1", "2001:10::1",
]  # fmt: skip


@pytest.mark.parametrize("address", INNER)
def test_an_address_that_leads_back_inside(address: str) -> None:
    assert not is_public(address)


def test_public_addresses_are_public() -> None:
    assert all(map(is_public, ("1.1.1.1", "8.8.8.8", "2606:4700:4700::1111")))


def echo(connection: socket.socket) -> bytes:
    """A page with the first line of the request."""
    body = b"secret of the host: " + connection.recv(1000).split(b"\r\n")[0]
    return b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s" % (len(body), body)


@pytest.fixture
def host_service() -> Iterator[int]:
    with serving(echo) as port:
        yield port


REACH = """
    import os, socket, urllib.request
    def direct(host):
        try:
            socket.create_connection((host, @port@), timeout=2)
            return "reached"
        except OSError:
            return "no"
    def through(url):
        try:
            return urllib.request.urlopen(url, timeout=10).read().decode()
        except OSError as error:
            return str(getattr(error, "code", error))
    print([direct(host) for host in @hosts@])
    print([through(f"http://{host}:{port}/x?y") for host in @hosts@ for port in (@port@, 80)])
    print(os.path.exists("/proc/net/if_inet6") and open("/proc/net/if_inet6").read())
"""


@pytest.mark.service("docker")
def test_metadata_and_private_networks_under_the_policy_open(
    docker_spec: Callable[..., RunSpec], host_service: int
) -> None:
    own = [each[4][0] for each in socket.getaddrinfo(socket.gethostname(), None, socket.AF_INET)]
    hosts = ["169.254.169.254", "172.17.0.1", "127.0.0.1", *map(str, own)]
    with DockerBackend(policy="open") as backend:
        result = backend.wait(backend.start(docker_spec(python(REACH, port=host_service, hosts=hosts))))
    lines = (result.logs / "agent.log").read_text().splitlines()
    assert lines[0] == str(["no"] * len(hosts))
    assert "secret" not in lines[1]
    assert lines[1].count("403") == lines[1].count("502") >= 2


@pytest.mark.service("docker")
def test_the_public_internet_under_the_policy_open(
    docker_spec: Callable[..., RunSpec], host_service: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It stays reachable, for plain HTTP, too. Here, a service of this machine stands for all of it."""
    monkeypatch.setattr(proxy, "_connect", lambda *_: socket.create_connection(("127.0.0.1", host_service)))
    code = """
        import urllib.request
        print(urllib.request.urlopen("http://example.org/x?y", timeout=20).read().decode())
    """
    with DockerBackend(policy="open") as backend:
        result = backend.wait(backend.start(docker_spec(python(code))))
    assert (result.logs / "agent.log").read_text() == "secret of the host: GET /x?y HTTP/1.1\n"


OWN = """
import socket, subprocess, sys, threading
from pathlib import Path
from sandbox.confinement.proxy import Proxy
from tests.sandbox.host_service import serving
for command in ("link set lo up", "address add 9.9.9.9/32 dev lo", "address add 2620:fe::9/128 dev lo"):
    subprocess.run(["ip", *command.split()], check=True)
for family, own in ((socket.AF_INET, "9.9.9.9"), (socket.AF_INET6, "2620:fe::9")):
    for port in (80, 8080):
        server = socket.create_server((own, port), family=family)
        threading.Thread(target=server.accept, daemon=True).start()
        for policy in ("open", "private"):
            with socket.socket(socket.AF_UNIX) as client:
                proxy = Proxy(Path(sys.argv[1]), policy)
                client.connect(sys.argv[1])
                client.sendall(f"CONNECT [{own}]:{port} HTTP/1.1\\r\\n\\r\\n".encode())
                print(policy, port, client.recv(1000).split()[1].decode())
"""


@pytest.mark.skipif(os.getuid() != 0, reason="only root can make a network of its own")
def test_this_machine_by_its_public_address(tmp_path: Path) -> None:
    """Its firewall does not see connections from itself. The network here is one without any other machine."""
    command = ["unshare", "--net", sys.executable, "-c", OWN, str(tmp_path / "proxy.sock")]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True, timeout=60)
    assert done.stdout.split("\n")[:-1] == ["open 80 502", "private 80 200", "open 8080 403", "private 8080 200"] * 2


@pytest.mark.service("docker")
def test_the_forwarder_as_a_way_out(docker_spec: Callable[..., RunSpec]) -> None:
    """It has no network but loopback, no IPv6, and runs in an image of ours."""
    spec = docker_spec("sleep 1000", time_limit_seconds=60)
    with DockerBackend() as backend:
        handle = backend.start(spec)
        label: dict[str, str | list[str] | bool] = {"label": f"mlebench.workdir={spec.workdir}"}
        [forwarder] = [each for each in connect().containers.list(filters=label) if each.labels[ROLE] == FORWARDER]
        assert str(forwarder.attrs["Config"]["Image"]) == connect().images.get("mlebench-base").id
        assert forwarder.exec_run(["ls", "/sys/class/net"]).output == b"lo\n"
        interfaces = forwarder.exec_run(["cut", "-c", "46-", "/proc/net/if_inet6"]).output
        assert interfaces in (b"", b"      lo\n")  # as the engine sets it
        backend.stop(handle)
        backend.wait(handle)


def ask(path: Path, target: bytes) -> str:
    """The proxy's answer to CONNECT; empty if it closes the connection."""
    with socket.socket(socket.AF_UNIX) as client, contextlib.suppress(ConnectionError):
        client.connect(str(path))
        client.sendall(b"CONNECT %s HTTP/1.1\r\n\r\n" % target)
        return client.makefile("rb").readline().decode().strip()
    return ""


def test_names_that_a_resolver_reads_in_another_way(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """Looking up a name of the agent's choice would already tell its owner something."""
    looked_up: list[object] = []

    def look_up(host: str, *_: object, **__: object) -> list[object]:
        looked_up.append(host)
        return []

    monkeypatch.setattr(socket, "getaddrinfo", look_up)
    targets = (
        b"secret.evil.example\0.listed.example:443",
        b"evil\xb2.listed.example:443",
        b"a@b/c.listed.example:443",
        b"[x.listed.example]:443",
        b"a.listed.example%lo:443",
        b"a.listed.example:" + b"9" * 30,
        b"a.listed.example:-443",
        b"a.listed.example:65979",
        b"a" * 256 + b".listed.example:443",
    )
    for policy, path in (("allowlist", tmp_path / "1"), ("open", tmp_path / "2"), ("private", tmp_path / "3")):
        server = proxy.Proxy(path, policy, [".listed.example"])  # type: ignore[arg-type]
        try:
            assert {ask(path, target) for target in targets} == {"HTTP/1.1 400 Bad Request"}
            assert looked_up == []
            assert ask(path, b"a_b.listed.example:443") == "HTTP/1.1 502 Bad Gateway"
            assert looked_up == ["a_b.listed.example"]
            looked_up.clear()
        finally:
            server.close()
    assert capfd.readouterr().err == ""


@pytest.mark.parametrize(("host", "name", "passes"), [
    ("192.0.2.7", None, True), ("192.0.2.7", "other.example", False), ("a.example", None, False),
    ("a.example", "A.example", True), ("a.example", "b.a.example", False),
])  # fmt: skip
def test_a_name_in_tls_that_is_not_the_hosts(host: str, name: str | None, passes: bool) -> None:
    """An address has no name in TLS."""
    sent = ssl.MemoryBIO()
    with contextlib.suppress(ssl.SSLWantReadError):
        context = ssl.create_default_context()
        context.check_hostname = False
        context.wrap_bio(ssl.MemoryBIO(), sent, server_hostname=name).do_handshake()
    client, ours = socket.socketpair()
    with client, ours:
        client.sendall(hello := sent.read())
        if passes:
            assert proxy._hello(ours, host) == hello
        else:
            with pytest.raises(ValueError, match="another name"):
                proxy._hello(ours, host)


def test_honest_connections_all_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As of a package manager. The forwarder would answer 503 to those that find the queue full."""
    monkeypatch.setattr(proxy.Proxy, "serve_forever", lambda _: None)  # busy
    with proxy.Proxy(tmp_path / "s", "open"), contextlib.ExitStack() as opened:
        for _ in range(proxy.CONNECTIONS):
            client = opened.enter_context(socket.socket(socket.AF_UNIX))
            client.setblocking(False)
            client.connect(str(tmp_path / "s"))


def test_a_proxy_that_gets_no_more_threads(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its places are not lost."""
    monkeypatch.setattr(proxy, "CONNECTIONS", 2)
    server = proxy.Proxy(tmp_path / "s", "allowlist")

    def fails(_thread: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    try:
        with monkeypatch.context() as patched:
            patched.setattr(threading.Thread, "start", fails)
            assert [ask(tmp_path / "s", b"a.example:443") for _ in range(3)] == ["", "", ""]
        assert ask(tmp_path / "s", b"a.example:443") == "HTTP/1.1 403 Forbidden"
    finally:
        server.close()
