"""Ways out of namespaces that have no container engine around them: of bubblewrap, by the supervisor, past the user."""

from __future__ import annotations

import os
import pickle
import socket
import subprocess
import sys
from pathlib import Path, PurePosixPath

import psutil
import pytest

from sandbox.confinement.world import Mount
from sandbox.errors import BackendError
from sandbox.rootless import bubblewrap
from sandbox.supervision import control
from tests import roots
from tests.sandbox.attacks.conftest import HANDS_IN, NOBODY, ROOT, Hostile, as_nobody, python
from tests.sandbox.conftest import processes_of
from tests.waiting import until

pytestmark = [pytest.mark.service("rootless"), pytest.mark.skipif(not sys.platform.startswith("linux"), reason="Linux")]

VIEWS = """
    import os
    pids = sorted(filter(str.isdigit, os.listdir("/proc")), key=int)
    print("processes", len(pids) < 8)
    for path in ("/proc/sys/kernel/core_pattern", "/proc/sys/vm/drop_caches", "/proc/sysrq-trigger", "/proc/kcore",
                 "/proc/keys", "/proc/kmsg", "/proc/timer_list"):
        try:
            with open(path, "r+" if "sys" in path else "r") as file:
                if "sys" in path or file.read(1):
                    print("opened", path)
        except OSError:
            pass
    print(sorted(os.listdir("/sys")), os.path.exists("/sys/fs/cgroup"))
    for folder, _, names in os.walk("/sys"):
        if folder.count("/") < 5 and os.access(folder, os.W_OK):
            print("writable", folder)
    print("root", sorted(set(os.listdir("/")) & {"work", "srv-of-the-host", "host"}))
    for folder in ("/root", "/run", "/mnt", "/media", "/var/run", "/var/lib/docker"):
        if os.path.isdir(folder) and os.access(folder, os.W_OK):
            print("writable", folder)
    print(os.uname().nodename)
"""


def test_views_of_the_kernel_and_the_machine(rootless: Hostile) -> None:
    """The process file system shows the run's own processes, and settings cannot be changed."""
    lines = rootless.run(python(VIEWS)).lines
    assert lines == ["processes True", "['devices'] False", "root []", "agent"]


def test_a_variable_with_options_for_bubblewrap() -> None:
    """Options are given to bubblewrap with a NUL between them; variables come from agent.yaml and from images."""
    mounts = [Mount(PurePosixPath("/"), Path("/roots/base"), read_only=True)]
    with pytest.raises(BackendError, match="has a NUL character"):
        bubblewrap.arguments(mounts, {"A": "b\0--ro-bind\0/\0/mnt"}, 1024, lambda _: None)


RIGHTS = """
    import ctypes, fcntl, os, re, termios
    status = open("/proc/self/status").read()
    print(*re.findall(r"^(?:CapInh|CapPrm|CapEff|CapBnd|CapAmb):\\t(.*)$", status, re.M))
    print(*re.findall(r"^(?:NoNewPrivs|Seccomp):\\t(.*)$", status, re.M), os.getuid(), os.getgid(), os.getgroups())
    libc = ctypes.CDLL(None, use_errno=True)
    for flag in (0x10000000, 0x00020000, 0x40000000, 0x20000000, 0x02000000):
        if libc.unshare(flag) == 0:
            print("unshared", hex(flag))
    if libc.syscall(56, 0x10000011, 0, 0, 0, 0) == 0:
        os._exit(0)
    for pid in (1, os.getppid()):
        if libc.ptrace(16, pid, 0, 0) == 0:
            print("traced", pid)
    try:
        fcntl.ioctl(os.open("/dev/tty", os.O_RDWR), termios.TIOCSTI, b"x")
        print("typed into a terminal")
    except OSError:
        pass
    for number in range(3):
        try:
            fcntl.ioctl(number, termios.TIOCSTI, b"x")
            print("typed into", number)
        except OSError:
            pass
    print(os.getsid(0) == os.getppid() or os.getsid(0) > 0)
    mounts = [line.split() for line in open("/proc/self/mountinfo")]
    print("propagation", [line[4] for line in mounts if any(field.startswith("shared:") for field in line[6:])])
    print("set-user-id", [line[4] for line in mounts if "nosuid" not in line[5].split(",")])
    devices = [line[4] for line in mounts if "nodev" not in line[5].split(",")]
    print("devices", [path for path in devices if not path.startswith("/dev/")])
"""


def test_rights_by_namespaces_programs_and_terminals(rootless: Hostile) -> None:
    """No namespace within, no tracing, no rights of a file, no terminal to type into, no mount that comes out."""
    lines = rootless.run(python(RIGHTS)).lines
    none = "0" * 16
    assert lines[0] == " ".join([none] * 5)
    assert lines[1].startswith("1 2 1000 1000 ")
    assert lines[2:] == ["True", "propagation []", "set-user-id []", "devices []"]


DESCRIPTORS = """
    import os
    own = []
    for name in os.listdir("/proc/self/fd"):
        try:
            own.append((int(name), os.readlink(f"/proc/self/fd/{name}").partition(":")[0]))
        except OSError:
            pass
    print(sorted(number for number, _ in own))
    for pid in filter(str.isdigit, os.listdir("/proc")):
        for name in ("environ", "maps"):
            try:
                text = open(f"/proc/{pid}/{name}", errors="replace").read()
                if "SECRET_OF_THE_OPERATOR" in text:
                    print("read", pid, name)
            except OSError:
                pass
        try:
            for number in os.listdir(f"/proc/{pid}/fd"):
                target = os.readlink(f"/proc/{pid}/fd/{number}")
                if "memfd" in target or target.startswith(("/work", "/root", "/var/lib")):
                    print("descriptor", pid, number, target)
        except OSError:
            pass
    print(sorted(name for name in os.environ if "SECRET" in name))
"""


def test_descriptors_and_the_environment_that_are_inherited(rootless: Hostile, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SECRET_OF_THE_OPERATOR", "SECRET_OF_THE_OPERATOR")
    kept = os.open("/etc/shadow" if not os.getuid() else "/etc/passwd", os.O_RDONLY)
    os.set_inheritable(kept, True)
    try:
        lines = rootless.run("exec 0</dev/null\n" + python(DESCRIPTORS)).lines
    finally:
        os.close(kept)
    assert lines[0] in ("[0, 1, 2]", "[0, 1, 2, 3]")  # the last one is the folder that is listed
    assert lines[1:] == ["[]"]


def test_abstract_sockets_and_shared_memory_of_the_machine(rootless: Hostile) -> None:
    code = """
        import os, socket
        with socket.socket(socket.AF_UNIX) as s:
            print("reached" if s.connect_ex(@name@) == 0 else "no")
        print(os.listdir("/dev/shm"), os.path.exists("/dev/mqueue") and os.listdir("/dev/mqueue"))
        try:
            with open("/dev/shm/x", "wb") as file:
                for _ in range(64):
                    file.write(bytes(1 << 20))
            print("all")
        except OSError as error:
            print(error.errno)
    """
    name = f"\0mlebench-attack-{os.getpid()}"
    shared = Path(f"/dev/shm/mlebench-attack-{os.getpid()}")
    shared.touch()
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(name)
        server.listen()
        try:
            lines = rootless.run(python(code, name=name), shm_bytes=10 << 20).lines
        finally:
            shared.unlink()
    assert lines == ["no", "[] False", "28"]


HOARD = """
    import ctypes
    libc = ctypes.CDLL(None, use_errno=True)
    libc.shmat.restype = ctypes.c_void_p
    kept = 0
    for _ in range(30):
        segment = libc.shmget(0, 20 << 20, 0o1600)
        if segment < 0:
            break
        address = libc.shmat(segment, None, 0)
        if address in (None, 2**64 - 1):
            break
        ctypes.memset(address, 1, 20 << 20)
        libc.shmdt(ctypes.c_void_p(address))
        kept += 20
    print(kept, flush=True)
    import time
    time.sleep(3)
"""


HOARD_IN_MAPPINGS = """
    import mmap, time
    kept = []
    for number in range(20):
        kept.append(mmap.mmap(-1, 30 << 20, flags=mmap.MAP_SHARED | mmap.MAP_ANONYMOUS))
        for _ in range(30):
            kept[-1].write(b"x" * (1 << 20))
        kept[-1].madvise(mmap.MADV_DONTNEED)
        time.sleep(0.1)
    print(600, flush=True)
    time.sleep(3)
"""
HOARD_IN_SOCKETS = """
    import array, os, socket, time
    kept, pairs = 0, []
    try:
        for _ in range(10):
            file = os.memfd_create("x")
            pairs.append(socket.socketpair())
            socket.send_fds(pairs[-1][0], [b"x"], [file])
            for _ in range(40):
                kept += os.write(file, b"x" * (1 << 20)) >> 20
            os.close(file)
    except OSError as error:
        assert error.errno == 38, error
    print(kept, flush=True)
    time.sleep(3)
"""


@pytest.mark.parametrize("hoard", [HOARD, HOARD_IN_MAPPINGS, HOARD_IN_SOCKETS], ids=["System V", "mappings", "sockets"])
def test_shared_memory_that_no_process_has(rootless: Hostile, hoard: str) -> None:
    """Shared pages stay when their process has let go of them. The run here has 200 MiB."""
    done = rootless.run(python(hoard), memory_bytes=200 << 20)
    assert done.result.status == "memory" or int(done.lines[0]) <= 200, done.lines


ORCHESTRATOR = """
import pickle, sys
from pathlib import Path
from sandbox.rootless.backend import RootlessBackend
backend = RootlessBackend(scratch=Path(sys.argv[2]))
handle = backend.start(pickle.loads(Path(sys.argv[1]).read_bytes()))
backend.wait(handle, lambda line: print(line, flush=True))
"""
STOP_EVERYTHING = """
    import os, signal
    for target in (-1, os.getppid(), 1):
        for number in (signal.SIGSTOP, signal.SIGKILL):
            try:
                os.kill(target, number)
            except OSError:
                pass
    print("stopped", flush=True)
    signal.pause()
"""


def test_stopping_everything_while_no_orchestrator_lives(rootless: Hostile, tmp_path: Path) -> None:
    """The supervisor is no process of the agent's, which sees and signals its own only."""
    spec = rootless.spec(HANDS_IN + python(STOP_EVERYTHING), time_limit_seconds=3, grace_seconds=0)
    (tmp_path / "spec").write_bytes(pickle.dumps(spec))
    command = [sys.executable, "-c", ORCHESTRATOR, str(tmp_path / "spec"), str(roots.scratch())]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as orchestrator:
        assert orchestrator.stdout is not None
        for line in orchestrator.stdout:
            if line == "stopped\n":
                break
        orchestrator.kill()
    done = rootless.finish(spec)
    assert (done.result.status, done.result.submission is not None) == ("timeout", True)
    assert processes_of(spec.workdir) == []


def test_a_supervisor_that_is_killed_takes_its_agent_along(rootless: Hostile) -> None:
    """An agent without limits must not go on, whoever has ended its supervisor."""
    spec = rootless.spec("(setsid sleep 4712.5 &) ; sleep 4712.5")
    rootless.backend.start(spec)
    supervisor = control.read(control.Layout(spec.workdir).supervisor, control.Supervisor)
    assert supervisor is not None

    def alive() -> list[int]:
        return [each.pid for each in psutil.process_iter(["cmdline"]) if "4712.5" in (each.info["cmdline"] or ())]

    until(lambda: len(alive()) >= 2)
    psutil.Process(supervisor.pid).kill()
    until(lambda: not alive())


@pytest.mark.skipif(os.getuid() != 0, reason="only root can become somebody else")
def test_other_users_of_the_machine(rootless: Hostile, foreign: Path) -> None:
    """They read nothing of a run: neither its files, nor its sockets, nor what its processes were started with."""
    code = """
import os, sys
from pathlib import Path
workdir, secret = Path(sys.argv[1]), sys.argv[2]
for path in (workdir, workdir / "home", workdir / "control" / "task.json"):
    try:
        print("read", os.listdir(path) if path.is_dir() else path.read_text())
    except PermissionError:
        pass
for pid in filter(str.isdigit, os.listdir("/proc")):
    for name in ("cmdline", "environ"):
        try:
            if secret.encode() in Path("/proc", pid, name).read_bytes() and int(pid) != os.getpid():
                print("seen", name)
        except OSError:
            pass
print("looked")
"""
    spec = rootless.spec("sleep 100", change={"env": {"TOKEN": "secret-4711"}})
    handle = rootless.backend.start(spec)
    try:
        assert spec.workdir.stat().st_mode & 0o777 == 0o700
        # As somebody who gets to the folder: that above it is closed to others, too.
        assert as_nobody(code, spec.workdir, "secret-" + "4711", folder=foreign) == ["looked"]
    finally:
        rootless.backend.stop(handle)
        rootless.backend.wait(handle)
    assert NOBODY
