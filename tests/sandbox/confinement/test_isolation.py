"""An agent that means harm."""

from __future__ import annotations

import socket
import textwrap
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil
import pytest

from sandbox.backend import RunSpec
from sandbox.confinement import proxy
from sandbox.confinement.proxy import is_allowed
from sandbox.docker.backend import DockerBackend
from tests.sandbox.confinement.conftest import Isolating
from tests.sandbox.conftest import Run
from tests.sandbox.docker.conftest import Waiting
from tests.sandbox.host_service import serving

PYTHON = "exec python3 - <<'PYTHON'\n{}\nPYTHON\n"


def python(code: str, **values: object) -> str:
    code = textwrap.dedent(code)
    for name, value in values.items():
        code = code.replace(f"@{name}@", repr(value))
    return PYTHON.format(code)


@pytest.fixture
def host_service() -> Iterator[int]:
    with serving(lambda _: b"secret of the host") as port:
        yield port


def test_answers_are_nowhere_in_the_container(run: Callable[..., Run], prepared: Path) -> None:
    (prepared / "private" / "test.csv").write_text("id,label\nanswer-4711,7\n")
    done = run(
        python(
            """
            import os
            found = files = 0
            for root, folders, names in os.walk("/"):
                if root == "/":
                    folders[:] = [each for each in folders if each not in ("proc", "sys", "usr", "opt", "lib")]
                for name in names:
                    path = os.path.join(root, name)
                    try:
                        if os.path.isfile(path) and os.path.getsize(path) < 1 << 20:
                            files += 1
                            found += ("answer-" + "4711").encode() in open(path, "rb").read()
                    except OSError:
                        pass
            print("searched" if files > 50 else "nothing to search", found)
            for path in ("/home/data/../private/test.csv", @answers@, "/proc/1/root" + @answers@):
                print(os.path.exists(path))
            """,
            answers=str(prepared / "private" / "test.csv"),
        )
    )
    assert done.lines == ["searched 0", "False", "False", "False"]
    mounts = run("cat /proc/self/mountinfo").log
    assert "/prepared/public " in mounts
    assert "/private" not in mounts


def test_the_agent_has_no_rights(run: Callable[..., Run], prepared: Path) -> None:
    done = run(
        """
        grep -E '^(CapEff|CapPrm|CapBnd|NoNewPrivs|Seccomp):' /proc/self/status | tr '\\t' ' '
        for path in /etc/x /usr/x /x /opt/venv/x /home/data/x /home/data/sample_submission.csv; do
            (echo y >$path) 2>/dev/null && echo "wrote $path"
        done
        rm -rf /home/data /home/instructions.txt 2>/dev/null; mv /home/data /home/gone 2>/dev/null
        ls /home/data/sample_submission.csv /home/instructions.txt
        chmod u+s "$(command -v bash)" 2>/dev/null && echo setuid
        mount -t tmpfs none /mnt 2>/dev/null && echo mounted
        mknod /home/tmp/disk b 254 0 2>/dev/null && echo device
        unshare -r true 2>/dev/null && echo namespace
        ls -la /var/run/docker.sock /run/docker.sock 2>/dev/null && echo docker
        ls /dev
        """
    )
    for line in ("CapEff: 0000000000000000", "CapBnd: 0000000000000000", "NoNewPrivs: 1", "Seccomp: 2"):
        assert line in done.lines
    assert "wrote" not in done.log
    for word in ("setuid", "mounted", "device", "namespace", "docker"):
        assert word not in done.lines
    assert "/home/data/sample_submission.csv" in done.lines
    assert "/home/instructions.txt" in done.lines
    assert not any(line.startswith(("sd", "vd", "nvme", "loop", "mem", "kmsg")) for line in done.lines)
    assert sorted(path.name for path in (prepared / "public").iterdir()) == [
        "description.md",
        "images",
        "sample_submission.csv",
    ]


def test_only_its_own_processes_are_seen(run: Callable[..., Run]) -> None:
    done = run("ls /proc | grep -c '^[0-9]*$'")
    assert int(done.lines[0]) < 12


REACH = """
    import socket, sys
    def reach(host, port):
        try:
            with socket.create_connection((host, port), timeout=1.5) as connection:
                return connection.recv(100).decode(errors="replace") or "connected"
        except OSError as error:
            return "no"
    def find(name):
        try:
            return socket.getaddrinfo(name, 80)[0][4][0]
        except OSError:
            return "no"
    from concurrent.futures import ThreadPoolExecutor
    with ThreadPoolExecutor(32) as threads:
        names = ["example.org", "host.docker.internal"]
        found = [threads.submit(find, name) for name in names]
        answers = threads.map(lambda target: reach(*target), @targets@)
        for (host, port), answer in zip(@targets@, answers):
            print(host, port, answer)
        for name, answer in zip(names, found):
            print(name, answer.result())
"""


def test_neither_internet_nor_host_are_reached(run: Callable[..., Run], host_service: int) -> None:
    addresses = {
        address.address
        for each in psutil.net_if_addrs().values()
        for address in each
        if address.family == socket.AF_INET and not address.address.startswith("127.")
    }
    own = {f"172.{second}.0.1" for second in range(17, 32)} | {"192.168.0.1", "192.168.16.1"}
    targets = [(address, host_service) for address in ("127.0.0.1", *sorted(addresses | own))]
    targets += [("1.1.1.1", 53), ("8.8.8.8", 443), ("169.254.169.254", 80), ("fe80::1%eth0", host_service)]
    done = run(python(REACH, targets=targets), time_limit_seconds=120)
    assert len(done.lines) == len(targets) + 2, done.log
    assert [line for line in done.lines if not line.endswith(" no")] == []


def test_runs_do_not_reach_each_other(
    isolating: Callable[..., Isolating], isolated_spec: Callable[..., RunSpec]
) -> None:
    """Each has a loopback interface of its own, and names of sockets (unix(7), abstract) of its own."""
    backend = isolating()
    listens = isolated_spec(
        python(
            """
            import socket, time
            server, named = socket.create_server(("0.0.0.0", 7777)), socket.socket(socket.AF_UNIX)
            named.bind("\\0first"); named.listen()
            print("listening", flush=True)
            time.sleep(60)
            """
        ),
        run_id="first",
    )
    first = backend.start(listens)
    waiting = Waiting(backend, first)
    waiting.until("listening")
    name = f"mlebench-{listens.run_id}"
    look = """
        import socket
        for address in (("127.0.0.1", 7777), ("services", 7777), (@name@, 7777), "\\0first"):
            try:
                with socket.socket(socket.AF_UNIX if isinstance(address, str) else socket.AF_INET) as s:
                    s.connect(address)
                print("reached", address)
            except OSError:
                print("no")
    """
    result = backend.wait(backend.start(isolated_spec(python(look, name=name), run_id="second")))
    assert (result.logs / "agent.log").read_text().splitlines() == ["no"] * 4
    backend.stop(first)
    waiting.result()


def test_the_forwarder_is_all_there_is(run: Callable[..., Run]) -> None:
    """Its three ports answer, by either name, and without a service behind them they say so."""
    done = run(
        python(
            """
            import urllib.request, urllib.error, socket
            for host, port in (("127.0.0.1", 5000), ("services", 8000)):
                try:
                    urllib.request.urlopen(f"http://{host}:{port}/health", timeout=5)
                except urllib.error.HTTPError as error:
                    print(port, error.code)
            open_ports = []
            for port in range(1, 65536):
                with socket.socket() as s:
                    if s.connect_ex(("127.0.0.1", port)) == 0 and s.getsockname() != s.getpeername():
                        open_ports.append(port)
            print(open_ports)
            """
        )
    )
    assert done.lines == ["5000 503", "8000 503", "[3128, 5000, 8000]"]


def test_programs_find_the_address_of_their_own_machine(run: Callable[..., Run]) -> None:
    """Java, Spark, Ray and others look it up when they start."""
    done = run(python("import socket; print(socket.gethostname(), socket.gethostbyname(socket.gethostname()))"))
    assert done.lines == ["agent 127.0.0.1"]


def test_ports_of_the_forwarder_are_taken(run: Callable[..., Run]) -> None:
    """An agent cannot answer in place of its services, which would only mislead itself."""
    done = run(
        python(
            """
            import socket
            for port in (5000, 8000, 3128):
                for address in ("127.0.0.1", "0.0.0.0"):
                    with socket.socket() as s:
                        s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                        s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
                        try:
                            s.bind((address, port)); s.listen()
                            print("bound", address, port)
                        except OSError:
                            pass
            print("done")
            """
        )
    )
    assert done.lines == ["done"]


@pytest.mark.parametrize(
    ("host", "answer"),
    [
        ("example.com", True),
        ("Example.COM.", True),
        ("files.example.org", True),
        ("example.org", False),
        ("evilexample.org", False),
        ("example.com.evil.net", False),
        ("", False),
    ],
)
def test_the_list_of_hosts(host: str, answer: bool) -> None:
    assert is_allowed(host, ["example.com", ".example.org"]) is answer


ASK = """
    import os, socket, ssl
    def hello(name):
        sent = ssl.MemoryBIO()
        context = ssl._create_unverified_context()
        try:
            context.wrap_bio(ssl.MemoryBIO(), sent, server_hostname=name).do_handshake()
        except ssl.SSLWantReadError:
            return sent.read()
    def ask(request, then=b""):
        with socket.create_connection(("127.0.0.1", 3128)) as proxy:
            proxy.sendall(request + b" HTTP/1.1\\r\\n\\r\\n")
            answer = proxy.recv(1000).split(b"\\r\\n")[0].decode()
            if then:
                try:
                    for at in (0, 20):  # a server's parser gets it in pieces, too
                        proxy.sendall(then[at:][:20] if not at else then[at:])
                    proxy.shutdown(socket.SHUT_WR)
                    return answer, b"".join(iter(lambda: proxy.recv(1000), b""))[:2].hex()
                except ConnectionError:  # it was refused after the first piece
                    return answer, ""
            return answer
    print(ask(b"CONNECT Allowed.example:443", hello("allowed.EXAMPLE")))
    for then in (hello("other.example"), hello(None), b"SSH-2.0-OpenSSH_9.2 and so on" * 3, b"GET / HTTP/1.1" * 3):
        print(ask(b"CONNECT allowed.example:443", then))
    for line in (b"CONNECT other.example:443", b"CONNECT allowed.example:80", b"GET http://allowed.example/"):
        print(ask(line))
    print(os.environ["https_proxy"])
"""


def test_hosts_on_the_list_are_reached_through_the_proxy(
    isolating: Callable[..., Isolating], isolated_spec: Callable[..., RunSpec], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Only over TLS, and only by the name that is on the list. The service answers with the beginning of the hello."""
    with serving(lambda connection: b"ok" if connection.recv(1000)[:1] == b"\x16" else b"no TLS") as port:
        monkeypatch.setattr(proxy, "_connect", lambda *_: socket.create_connection(("127.0.0.1", port)))
        backend = isolating(policy="allowlist", allowed_hosts=["allowed.example"])
        result = backend.wait(backend.start(isolated_spec(python(ASK))))
    established = "HTTP/1.1 200 Connection established"
    assert (result.logs / "agent.log").read_text().splitlines() == [
        str((established, b"ok".hex())),
        *[str((established, "1503"))] * 2,  # an alert of TLS
        *[str((established, ""))] * 2,
        "HTTP/1.1 403 Forbidden",
        "HTTP/1.1 403 Forbidden",
        "HTTP/1.1 405 Method Not Allowed",
        "http://127.0.0.1:3128",
    ]


def test_a_listed_name_for_an_inner_address_is_refused() -> None:
    for policy in ("allowlist", "open"):
        with pytest.raises(OSError, match="is private"):
            proxy._connect("localhost", 443, policy)


@pytest.mark.service("docker")
def test_private_means_everything_but_the_loopback_of_the_machine(
    docker_spec: Callable[..., RunSpec], host_service: int
) -> None:
    code = """
        import socket, urllib.request
        def ask(host):
            with socket.create_connection(("127.0.0.1", 3128)) as proxy:
                proxy.sendall(f"CONNECT {host}:@port@ HTTP/1.1\\r\\n\\r\\n".encode())
                return b"".join(iter(lambda: proxy.recv(1000), b"")).splitlines()
        print(ask("172.17.0.1")[-1].decode())
        for host in ("127.0.0.1", "localhost", "0.0.0.0", "[::1]", "[::ffff:127.0.0.1]", "[::]", "2130706433"):
            print(ask(host)[0].decode())
    """
    with DockerBackend(policy="private") as backend:
        result = backend.wait(backend.start(docker_spec(python(code, port=host_service))))
    lines = (result.logs / "agent.log").read_text().splitlines()
    assert lines == ["secret of the host", *["HTTP/1.1 502 Bad Gateway"] * 7]
