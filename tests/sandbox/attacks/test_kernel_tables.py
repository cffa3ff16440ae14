"""Tables of the kernel that all containers of a machine share. Nothing here fills one.

docs/security.md, "What the kernel shares", has the list of the tables.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from sandbox.backend import Allocation
from sandbox.docker.engine import connect
from sandbox.limits import MIB
from sandbox.supervision import openfiles
from tests.sandbox.attacks.conftest import HANDS_IN, Hostile, python
from tests.sandbox.docker.conftest import Waiting

NETWORK = """
    import errno, os, socket
    print(sorted(os.listdir("/sys/class/net")), len(open("/proc/net/arp").readlines()) - 1)
    kinds = {"udp": (socket.AF_INET, socket.SOCK_DGRAM), "tcp": (socket.AF_INET, socket.SOCK_STREAM),
             "icmp": (socket.AF_INET, socket.SOCK_DGRAM, socket.IPPROTO_ICMP),
             "udp6": (socket.AF_INET6, socket.SOCK_DGRAM)}
    for name, kind in kinds.items():
        for network in ("10.0.0.", "172.17.0.", "172.20.0.", "192.168.0.", "192.0.2.", "224.0.0."):
            for host in range(1, 255):
                address = ("fd00::" if name == "udp6" else network) + str(host)
                with socket.socket(*kind) as s:
                    if s.connect_ex((address, 9)) not in (errno.ENETUNREACH, errno.EADDRNOTAVAIL):
                        print("sent", name, address)
    try:
        print(socket.getaddrinfo("example.org", 80))
    except OSError as error:
        print("no name")
    print(len(open("/proc/net/arp").readlines()) - 1)
"""


def test_neighbours_by_the_thousand(contained: Hostile) -> None:
    """Nothing leaves the container, so no neighbour is looked for, no connection tracked, and no name server asked."""
    before = {each.id for each in connect().networks.list()}
    spec = contained.spec('echo begun; until [ -e "$SUBMISSION_DIR/go" ]; do sleep 0.1; done\n' + python(NETWORK))
    waiting = Waiting(contained.backend, contained.backend.start(spec))
    waiting.until("begun")
    labels: dict[str, str | list[str] | bool] = {"label": f"mlebench.workdir={spec.workdir}"}
    assert connect().networks.list(filters=labels) == []
    modes = {
        each.attrs["HostConfig"]["NetworkMode"].partition(":")[0] for each in connect().containers.list(filters=labels)
    }
    assert modes == {"none", "container"}
    (spec.workdir / "home" / "submission" / "go").touch()
    waiting.result()
    assert waiting.lines == ["begun", "['lo'] 0", "no name", "0"]
    assert before >= {each.id for each in connect().networks.list(filters=labels)}


def test_connections_that_the_host_tracks(isolated: Hostile) -> None:
    """Datagrams to the forwarder stay in a network without a firewall, which tracks none of them."""
    code = """
        import socket
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
            for port in range(1, 2001):
                s.sendto(b"x", ("127.0.0.1", port))
        with open("/proc/sys/net/netfilter/nf_conntrack_count") as count:
            print(int(count.read()))
    """
    tracked = Path("/proc/sys/net/netfilter/nf_conntrack_count")
    if not tracked.exists():
        pytest.skip("this kernel tracks no connections")
    assert isolated.run(python(code)).lines == ["0"]


def test_open_files_of_all_processes(isolated: Hostile) -> None:
    """A process may open its part of the half of the table, or what every program expects."""
    code = """
        import os, resource
        kept = []
        try:
            while True:
                kept.append(os.open("/dev/null", os.O_RDONLY))
        except OSError:
            print(len(kept) + 3, *resource.getrlimit(resource.RLIMIT_NOFILE))
        try:
            resource.setrlimit(resource.RLIMIT_NOFILE, (5000000, 5000000))
        except (OSError, ValueError):
            print("no more")
    """
    _, most = openfiles._table()
    part = openfiles.limit(100, 500)
    assert part == max(min(most // 2 // 50_000, 4096), 1024)
    done = isolated.run(python(code), processes=100, change={"allocation": Allocation(slots=500)})
    assert done.lines == [f"{part} {part} {part}", "no more"]


@pytest.mark.parametrize(
    ("processes", "slots", "most", "each"),
    [
        (1024, 2, 2_470_938, 1024),
        (1024, 2, 8_000_000, 1953),
        (100, 1, 2**63 - 1, 4096),
        (None, 1, 5_000_000, 2441),
    ],
)
def test_a_process_may_open_its_part_of_half_of_the_table(
    processes: int | None, slots: int, most: int, each: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(openfiles, "TABLE", tmp_path / "table")
    openfiles.TABLE.write_text(f"1000\t0\t{most}\n")
    assert openfiles.limit(processes, slots) == each


def test_a_table_of_open_files_that_is_nearly_full(
    contained: Hostile, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Mapped files count, too. Who has few goes on. The table is not the one of the machine."""
    monkeypatch.setattr(openfiles, "TABLE", tmp_path / "table")
    openfiles.TABLE.write_text("10\t0\t4000\n")
    waits = 'echo begun\nuntil [ -e "$SUBMISSION_DIR/go" ]; do sleep 0.1; done\n'
    maps = """
        import mmap, time
        open("tmp/x", "w").write("x" * 4096)
        kept = []
        for _ in range(1000):
            with open("tmp/x") as file:
                kept.append(mmap.mmap(file.fileno(), 4096, access=mmap.ACCESS_READ))
        print("mapped", flush=True)
        time.sleep(1000)
    """
    modest, greedy = contained.spec(HANDS_IN + waits), contained.spec(HANDS_IN + python(maps), run_id="greedy")
    first, second = (Waiting(contained.backend, contained.backend.start(spec)) for spec in (modest, greedy))
    first.until("begun")
    second.until("mapped")
    openfiles.TABLE.write_text("3700\t0\t4000\n")
    result = second.result()
    assert result.status == "processes"
    assert "the machine can open only 300 more files, and the run has" in str(result.message)
    assert result.submission is not None
    (modest.workdir / "home" / "submission" / "go").touch()
    assert first.result().status == "completed"


OTHERS = """
    import os, resource, socket
    for name in ("CORE", "RTPRIO", "NICE", "MSGQUEUE", "SIGPENDING", "MEMLOCK"):
        print(name, resource.getrlimit(getattr(resource, "RLIMIT_" + name))[1])
    print(sorted(set(os.listdir("/dev")) - {"fd", "full", "mqueue", "null", "ptmx", "pts", "random", "shm", "stderr",
                                           "stdin", "stdout", "tty", "urandom", "zero", "console", "core"}))
    for path in ("/proc/sys/kernel/pid_max", "/proc/sys/fs/file-max", "/proc/sys/vm/nr_hugepages"):
        print(os.access(path, os.W_OK))
    made = [os.access(path, os.W_OK) for path, _, _ in os.walk("/sys/fs/cgroup") if path.count("/") < 6]
    print(any(made), len(made) > 0)
    try:
        os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(1))
        print("real time")
    except PermissionError:
        print("no real time")
    for name in ("ipc", "net", "pid", "mnt", "uts"):
        print(os.readlink(f"/proc/self/ns/{name}"))
"""


def test_other_tables_are_bounded_by_what_the_container_has(isolated: Hostile) -> None:
    """Its own namespaces, no devices, read-only settings of the kernel and control groups, and limits of a process."""
    lines = isolated.run(python(OTHERS)).lines
    limits = dict(line.split() for line in lines[:6])
    assert (limits["CORE"], limits["RTPRIO"], limits["NICE"]) == ("0", "0", "0")
    assert lines[6:12] == [
        *("[]", "False", "False", "False", f"False {isolated.contained}"),  # without an engine, no groups are shown
        "no real time",
    ]
    host = {str(Path(f"/proc/self/ns/{name}").readlink()) for name in ("ipc", "net", "pid", "mnt", "uts")}
    assert not host & set(lines[12:])


def test_memory_of_the_kernel_counts_as_memory_of_the_run(isolated: Hostile) -> None:
    """Messages, locks, entries of folders and the like: here 190 MiB of messages, in a run that has 100 MiB."""
    code = """
        import ctypes
        libc = ctypes.CDLL(None, use_errno=True)
        message = ctypes.create_string_buffer(b"\\1" + bytes(8200))
        for number in range(12000):
            queue = libc.msgget(0, 0o1600)
            if queue < 0 or any(libc.msgsnd(queue, message, 8192, 0o4000) for _ in range(2)):
                print("refused", number < 6400, flush=True)
                break
        else:
            print("all of them", flush=True)
    """
    done = isolated.run(python(code), memory_bytes=100 * MIB)
    assert done.result.status == "memory" or done.lines[:1] == ["refused True"], done.lines
