"""System calls that no agent needs, and rights that the orchestrator does not."""

from __future__ import annotations

import grp
import os
import pickle
import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from sandbox.confinement import seccomp
from tests.sandbox.attacks.conftest import HANDS_IN, NOBODY, Hostile, as_nobody, python
from tests.sandbox.docker.conftest import remains_of

CALLS = """
    import ctypes, fcntl, os, platform, socket
    libc = ctypes.CDLL(None, use_errno=True)
    numbers = {"io_uring_setup": 425, "io_uring_enter": 426, "ptrace": 101, "unshare": 272, "process_vm_readv": 310,
               "bpf": 321, "userfaultfd": 323, "perf_event_open": 298, "keyctl": 250, "mount": 165, "setns": 308,
               "kexec_load": 246, "open_by_handle_at": 304, "name_to_handle_at": 303, "add_key": 248, "quotactl": 179,
               "pivot_root": 155, "modify_ldt": 154, "fanotify_init": 300, "vmsplice": 278, "listmount": 458,
               "seccomp": 317, "io_setup": 206, "io_destroy": 207, "io_getevents": 208, "io_submit": 209,
               "io_cancel": 210, "io_pgetevents": 333, "mq_open": 240, "request_key": 249, "syslog": 103,
               "fsopen": 430, "io_uring_register": 427}
    for name, number in numbers.items():
        ctypes.set_errno(0)
        found = libc.syscall(number, 0, 0, 0, 0, 0)
        if not (found == -1 and ctypes.get_errno() in (1, 38)):
            print("allowed:", name, found, ctypes.get_errno())
    for family in range(46):
        try:
            socket.socket(family, socket.SOCK_STREAM if family != 16 else socket.SOCK_RAW).close()
            print("socket:", family)
        except OSError as error:
            if family in (1, 2, 10, 16) and error.errno == 1:
                print("refused:", family)
    with open("tmp/x", "w") as file:
        for request in (0x801C581F, 0x401C5820, 0x80086601, 0x40086602, 0x1_401C5820):
            ctypes.set_errno(0)
            if libc.ioctl(file.fileno(), ctypes.c_ulong(request), bytes(64)) != -1 or ctypes.get_errno() != 1:
                print("ioctl:", hex(request), ctypes.get_errno())
    ctypes.set_errno(0)
    if libc.prctl(22, 2, bytes(16), 0, 0) != -1 or ctypes.get_errno() != 1:
        print("prctl: a filter of system calls")
    with socket.socket(socket.AF_INET6) as s:
        s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        s.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)  # 26, as SO_ATTACH_FILTER
        for option in (26, 50, 51, 52):
            try:
                s.setsockopt(socket.SOL_SOCKET, option, bytes(16))
                print("setsockopt:", option)
            except OSError as error:
                if error.errno != 1:
                    print("setsockopt:", option, error)
    print("done")
"""


@pytest.mark.skipif(os.uname().machine != "x86_64", reason="the numbers are those of x86-64")
def test_system_calls_that_no_agent_needs(isolated: Hostile) -> None:
    lines = isolated.run(python(CALLS)).lines
    assert lines[-1] == "done"
    assert [line for line in lines[:-1] if line not in ("socket: 1", "socket: 2", "socket: 10", "socket: 16")] == []


def test_the_profile_is_the_one_that_was_reviewed() -> None:
    """A change of the list is a decision: change this test with it."""
    names = seccomp.ALLOWED.read_text().split()
    assert names == sorted(set(names), key=names.index)
    assert len(names) == 268
    never = {
        "io_uring_setup",
        "ptrace",
        "unshare",
        "setns",
        "mount",
        "bpf",
        "userfaultfd",
        "keyctl",
        "clone3",
        "socket",
        "io_setup",
        "seccomp",
    }
    assert never.isdisjoint(names)
    profile = seccomp.profile()
    assert profile["defaultAction"] == "SCMP_ACT_ERRNO"
    allowed = [
        (each["args"][0]["value"] >> 8, each["args"][0]["valueTwo"] >> 8)
        for each in profile["syscalls"]
        if each["names"] == ["ioctl"]
    ]
    matching = [kind for kind in range(256) if any(kind & mask == value for mask, value in allowed)]
    assert sorted(set(range(256)) - set(matching)) == sorted(seccomp.FILE_ATTRIBUTES)


ORCHESTRATOR = """
import pickle, sys
from pathlib import Path
from sandbox.docker.backend import DockerBackend
with DockerBackend() as backend:
    handle = backend.start(pickle.loads(Path(sys.argv[1]).read_bytes()))
    result = backend.wait(handle, print)
    print(result.status, result.submission is not None)
    backend.discard(handle)
    print(handle.workdir.exists())
"""


def test_an_orchestrator_without_root(contained: Hostile, foreign: Path) -> None:
    """It needs access to the engine only. The agent then has its user id, still without rights in the container."""
    script = HANDS_IN + 'id -u; mkdir "$CODE_DIR/d"; chmod 0 "$CODE_DIR/d"; grep CapEff /proc/self/status'
    spec = contained.spec(script)
    shutil.copytree(spec.data, foreign / "prepared" / "public")
    shutil.copytree(spec.agent.folder, foreign / "agent")
    spec = replace(
        spec,
        data=foreign / "prepared" / "public",
        workdir=foreign / "work",
        agent=spec.agent.model_copy(update={"folder": foreign / "agent"}),
    )
    (foreign / "spec").write_bytes(pickle.dumps(spec))
    for path in foreign.rglob("*"):
        os.chown(path, NOBODY, NOBODY)
    lines = as_nobody(ORCHESTRATOR, foreign / "spec", folder=foreign, group=grp.getgrnam("docker").gr_gid)
    assert lines == [str(NOBODY), "CapEff:\t0000000000000000", "completed True", "False"]
    assert remains_of(foreign / "work") == []
